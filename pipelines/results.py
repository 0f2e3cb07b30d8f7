"""What the functions of `library.py` return: a fine-tuned model, the artifacts of a recipe, a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from korbert.errors import ModelError
from korbert.messages import Message
from korbert.model import Model
from korbert.notebook import as_html
from korbert.pipelines import artifacts, reports
from korbert.pipelines.artifacts import Artifact, drawing
from korbert.pipelines.reports.artifacts.task_scores import mean
from korbert.pipelines.reports.pages.compare import ShownComparison
from korbert.system import console


@dataclass(frozen=True, repr=False)
class Finetuned:
    """A fine-tuned model with its scores: the artifact in `folder`, which `korbert finetune` writes, too.

        >>> result = korbert.Finetuned.open("models/mood")
        >>> result.scored_on, list(result.scores), list(result.baselines)
        ('folds', ['accuracy', 'macro_f1'], ['words', 'majority'])

    Attributes:
        folder: The folder of the artifact. Without an `output` it is temporary, and removed with this object.
        kind: The kind of the task.
        scored_on: "test"; "folds": all rows, each scored by a model that had not learned it; or "valid": these rows
            also chose the epoch.
        rows: The number of rows scored.
        scores: Metric -> score of the model, the mean over its seeds; metrics that are undefined are left out.
        interval: The 95 % interval of the first metric over rows; None if undefined.
        baselines: Name -> scores, as above, of each baseline, and of other encoders trained for comparison.
        notes: What the user should know of the rows: those read, those dropped, too few of them.
    """

    folder: Path
    kind: str
    scored_on: Literal["test", "valid", "folds"]
    rows: int
    scores: Mapping[str, float]
    interval: tuple[float, float] | None
    baselines: Mapping[str, Mapping[str, float]]
    notes: Sequence[str]
    _figures: Sequence[str] = field(default=(), compare=False)

    @classmethod
    def open(cls, folder: str | Path) -> "Finetuned":
        """Opens the finished artifact in a folder. Raises ArtifactError if there is none, or if it is damaged."""
        artifact = Artifact.open(Path(folder))
        with drawing(artifact):
            record = artifact.json("scores.json")
            scores_by_model = {
                entry["name"]: {name: score for name in record["metrics"] if (score := mean(name, entry)) is not None}
                for entry in record["models"]
            }
            main = record["models"][0]
            ends = main.get("examples")
            return cls(
                Path(folder), record["task"]["kind"], record["scored_on"], record["counts"][record["scored_on"]],
                scores_by_model.pop(main["name"]), ends and tuple(ends), scores_by_model,
                tuple(map(Message.from_json, record["said"])), figures_of(artifact),
            )  # fmt: skip

    @cached_property
    def model(self) -> Model:
        """The model, on the best device."""
        return Model.load(self.folder)

    def report(self) -> Path:
        """The page of the artifact, written again if it is missing: scores, training, errors."""
        page = self.folder / artifacts.store.PAGE
        return page if page.exists() else reports.render(self.folder)

    def __repr__(self) -> str:
        return "\n  ".join((f"{self.kind} in {self.folder}", *self._figures))

    def _repr_html_(self) -> str:
        main, *other_figures = self._figures
        facts = {"scores": main, "others": other_figures, "notes": self.notes, "folder": self.folder}
        return as_html(f"fine-tuned: {self.kind}", facts)


@dataclass(frozen=True, repr=False)
class Run:
    """The artifacts of a recipe, after `run` or `pretrain`.

        >>> made = korbert.run("mine.toml", to="clean")
        >>> made.report().as_posix()
        'artifacts/mine/index.html'

    Attributes:
        folder: The folder of the recipe's artifacts.
        stages: Name of each stage that was run or found fresh -> its artifact.
        figures: Name of the stage -> the figures that the terminal shows.
    """

    folder: Path
    stages: Mapping[str, Path]
    figures: Mapping[str, Sequence[str]]

    @property
    def tasks(self) -> dict[str, Finetuned]:
        """The result of each task among the stages, by the name of its stage."""
        tasks = filter(reports.task_scores.has_result, self.stages)
        return {name: Finetuned.open(self.stages[name]) for name in tasks}

    @cached_property
    def model(self) -> Model:
        """The pretrained model. ModelError if `pretrain` is not among the stages."""
        if "pretrain" not in self.stages:
            raise ModelError(
                "{folder}: these stages have no model ({stages}): run pretrain, too",
                folder=self.folder,
                stages=", ".join(self.stages),
            )
        return Model.load(self.stages["pretrain"])

    def report(self) -> Path:
        """The index page of the recipe, which links the page of each stage."""
        return self.folder / "index.html"

    def __repr__(self) -> str:
        lines = (f"{name}: {', '.join(figures)}" for name, figures in self.figures.items())
        return "\n  ".join((str(self.folder), *lines))

    def _repr_html_(self) -> str:
        return as_html(str(self.folder), self.figures)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Models of one task, or pretraining runs, side by side.

        >>> compared = korbert.compare("models/mood", "models/mood", model=["linear", "words"])
        >>> compared.report("compared.html").is_file()
        True

    Attributes:
        names: The names of the sides, in order.
        details: What `korbert compare --json` prints.
    """

    names: Sequence[str]
    details: Mapping[str, Any]
    _shown: ShownComparison = field(repr=False)

    def report(self, path: str | Path) -> Path:
        """Writes the page: curves of runs, examples of tasks. Returns its path."""
        return reports.compare.write_page(Path(path), self._shown)

    def __repr__(self) -> str:
        out = console(width=120, highlight=False)
        with out.capture() as captured:
            reports.summary.show_tables(self._shown.tables, self._shown.sentences, out)
        return captured.get().rstrip()


def figures_of(artifact: Artifact) -> list[str]:
    """The figures of an artifact, as the terminal shows them."""
    return list(map(str, reports.stage_page.figures_of(artifact)))
