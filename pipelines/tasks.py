"""The table of tasks. A task is said here once: its name, kind, settings, reader, labels, metrics and baseline.

A data set of a known kind is one entry, a reader and a settings class. Its kind runs it: `classification.py` is that of
labelled texts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from korbert.tasks import nsmc
from korbert.tasks.classification_settings import ClassificationTaskSettings
from korbert.tasks.nsmc.settings import NsmcSettings
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs

if TYPE_CHECKING:
    import pandas as pd

    from korbert.tasks.metrics import Metric

__all__ = ["TASKS", "ClassificationTask"]


@dataclass(frozen=True)
class ClassificationTask:
    """Labelled texts.

    name: of the stage, of its section in a recipe, and in messages. read: one file -> its texts in order, as columns
    `id` (str, unique), `text` (str) and `label` (int64, a place in `labels`). metrics: those of the test scores; the
    first one chooses epoch, rate and C on validation texts. baseline: None for none. texts: what errors and notes call
    the texts.
    """

    name: str
    settings: type[ClassificationTaskSettings]
    read: Callable[[Path], "pd.DataFrame"]
    labels: tuple[str, ...]
    metrics: tuple["Metric", ...] = ("accuracy", "macro_f1")
    baseline: Literal["tfidf"] | None = "tfidf"
    texts: str = "texts"
    kind: ClassVar[str] = "classification"

    def run(self, settings: ClassificationTaskSettings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
        """The task as a stage: writes model/, scores.json, predictions.parquet and metrics/ (docs/formats.md)."""
        from pipelines import classification  # loads PyTorch

        return classification.run(self, settings, inputs, output, runtime)


TASKS: Mapping[str, ClassificationTask] = {
    task.name: task
    for task in (
        ClassificationTask(
            name="nsmc",
            settings=NsmcSettings,
            read=nsmc.read,
            labels=nsmc.LABELS,
            metrics=("accuracy",),
            texts="reviews",
        ),
    )
}
