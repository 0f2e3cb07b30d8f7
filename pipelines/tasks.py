"""The table of tasks. An entry is all there is to a task: name, kind, settings, reader, labels, metrics, baseline.

A new data set of a known kind is one entry, a reader and a settings class. classification.py and reading.py run them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from korbert.tasks import korquad, nsmc
from korbert.tasks.questions import AnswerMetrics, Dataset
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Figures, Inputs, figures, imported

if TYPE_CHECKING:
    import pandas as pd

    from korbert.tasks.classification_settings import ClassificationTaskSettings
    from korbert.tasks.metrics import Metric
    from korbert.tasks.reading_settings import ReadingTaskSettings

__all__ = ["KORQUAD", "LIBRARIES", "NSMC", "TASKS", "ClassificationTask", "ReadingTask", "Task"]

LIBRARIES = ("torch", "numpy", "kiwipiepy", "kiwipiepy_model", "sentencepiece")


@dataclass(frozen=True)
class ClassificationTask:
    """Labelled texts.

    name: of the stage, of its section in a recipe, and in messages. read: one file -> its texts in order, as columns
    `id` (str, unique), `text` (str) and `label` (int64, index into `labels`). metrics: of the test scores; the first
    one chooses epoch, learning rate and C on validation texts. baseline: None for none. texts: word for the texts in
    errors and notes.
    title, about: name and short description of the data set. asks: description of the task, on the index page.
    version: raised when a code change alters the bytes. page: a module as in pipelines.stages.Stage.
    """

    name: str
    title: str
    settings: "str | type[ClassificationTaskSettings]"
    read: Callable[[Path], "pd.DataFrame"]
    labels: tuple[str, ...]
    metrics: tuple["Metric", ...] = ("accuracy", "macro_f1")
    baseline: Literal["tfidf"] | None = "tfidf"
    texts: str = "texts"
    about: str = ""
    asks: str = ""
    version: int = 1
    page: str = ""

    kind: ClassVar[str] = "classification"
    reads: ClassVar[tuple[str, ...]] = ("clean", "vocab", "pretrain")
    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "scikit-learn", "pandas")
    writes: ClassVar[str] = "model/, scores.json with baselines, and predictions.parquet"
    products: ClassVar[Mapping[str, str]] = {}

    @property
    def figure(self) -> str:
        """Label of the score at the top of the index page."""
        return figures.label(self.metrics[0])

    @property
    def figures(self) -> Figures:
        """The lines of the closing table."""
        return figures.classification(self.title, self.metrics[0])

    def run(self, settings: "ClassificationTaskSettings", inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
        """The task as a stage: writes model/, scores.json, predictions.parquet and metrics/ (docs/formats.md)."""
        counts: Counts = imported("pipelines.classification:run")(self, settings, inputs, output, runtime)
        return counts


@dataclass(frozen=True)
class ReadingTask:
    """Extractive question answering.

    name, title, about, asks, version, page: as in ClassificationTask. read: one file -> its questions with their
    answers. metrics: of a predicted text. submission: whether to write a folder that answers files of the task's format
    on another machine.
    """

    name: str
    title: str
    settings: "str | type[ReadingTaskSettings]"
    read: Callable[[Path], Dataset]
    metrics: AnswerMetrics
    submission: bool = False
    about: str = ""
    asks: str = ""
    version: int = 1
    page: str = ""

    kind: ClassVar[str] = "reading"
    reads: ClassVar[tuple[str, ...]] = ("vocab", "pretrain")
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES
    figure: ClassVar[str] = "F1 (of 100)"

    @property
    def writes(self) -> str:
        """Description of the artifact for --help."""
        folder = ", and submission/, a folder to submit" if self.submission else ""
        return f"model/, predictions.json, scores.json{folder}"

    @property
    def products(self) -> Mapping[str, str]:
        """Files named below the closing table."""
        return {f"{self.title} predictions": "predictions.json"}

    @property
    def figures(self) -> Figures:
        """The lines of the closing table."""
        return figures.reading(self.title)

    def run(self, settings: "ReadingTaskSettings", inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
        """The task as a stage: writes model/, predictions.json, scores.json and more (docs/formats.md)."""
        counts: Counts = imported("pipelines.reading:run")(self, settings, inputs, output, runtime)
        return counts


Task = ClassificationTask | ReadingTask

NSMC = ClassificationTask(
    name="nsmc",
    settings="korbert.tasks.nsmc.settings:NsmcSettings",
    read=nsmc.read,
    labels=nsmc.LABELS,
    metrics=("accuracy",),
    texts="reviews",
    title="NSMC",
    about="movie reviews",
    asks="Sentiment of movie reviews",
    version=4,
    page="pipelines.reports.nsmc",
)
KORQUAD = ReadingTask(
    name="korquad",
    settings="korbert.tasks.korquad.settings:KorquadSettings",
    read=korquad.read,
    metrics=AnswerMetrics(korquad.exact_match, korquad.f1),
    submission=True,
    title="KorQuAD",
    about="reading comprehension",
    asks="Extractive question answering",
    version=5,
    page="pipelines.reports.korquad",
)

TASKS: dict[str, Task] = {task.name: task for task in (NSMC, KORQUAD)}
