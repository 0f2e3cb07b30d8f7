"""The interface of all kinds of tasks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError
from torch import Tensor, nn

from korbert.errors import ModelError, SettingsError
from korbert.folders import model_folder
from korbert.messages import Message, argument
from korbert.modeling import AnyConfig, Network, Pooling
from korbert.system import JsonObject
from korbert.tasks.files import Role, TaskRow, TaskRows
from korbert.tasks.metrics.statistics import RunArray, Score
from korbert.tasks.passages import Passage
from korbert.tasks.splits import Splits
from korbert.tokenization import AnyTokenizer
from korbert.training import Batch, Examples, Scoring
from korbert.vectors import Side

TaskPrediction = Any
"""The prediction for a row as a JSON value: like its target, or an object with more detail."""

Morphemes = Mapping[str, Sequence[str]]
"""The morphemes of every text of the rows."""


@dataclass(frozen=True)
class Prepared:
    """Rows as examples.

    passages: the pieces of the texts of each row, for kinds that map predictions back to them; empty for other kinds,
    to save memory. blank: whether a text of a row is empty, for kinds that give such a row no label.
    """

    rows: Sequence[TaskRow]
    examples: Examples
    passages: Sequence[Sequence[Passage]] = ()
    blank: Sequence[bool] = ()


class Baseline(NamedTuple):
    """A model without an encoder. facts: the value chosen (`c` or `alpha`). predictions: of the test rows."""

    name: str
    facts: Mapping[str, Any]
    predictions: list[TaskPrediction]


class TeacherOutputs(NamedTuple):
    """The outputs of a teacher for N rows, which have K units in all: texts, words, or pieces.

    values: (K, C) float32, label probabilities, or numbers. starts: (K,) int32, the first character of each unit; 0
    where units are not parts of one text. units: (N,) int32, units per row.
    """

    values: NDArray[np.float32]
    starts: NDArray[np.int32]
    units: NDArray[np.int32]

    @classmethod
    def joined(cls, parts: Sequence["TeacherOutputs"]) -> "TeacherOutputs":
        """The outputs for the rows of all parts."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


class Head(NamedTuple):
    """The output of a head on a frozen encoder: scores for a row, or for each piece if there is no pooling.

    bias: the score of an untrained head.
    """

    num_outputs: int
    pooling: Pooling | None
    bias: float = 0.0


class Kind(BaseModel, ABC, frozen=True, extra="forbid"):
    """A task: what its training rows define (such as the labels), and how it is trained and scored.

    Its fields are saved with the model, in `task` of config.json, so that it can be scored and used elsewhere.

    metrics: names of the scores, the one that makes choices first. max_length: pieces a row. columns: role -> the
    columns of the training file, by which other files are read, too.
    """

    name: ClassVar[str]
    roles: ClassVar[tuple[Role, ...]]  # that a row of a labelled file may have
    roles_to_score: ClassVar[tuple[Role, ...]] = ()  # roles of validation and test files, if they differ

    operation: ClassVar[str] = "predict"  # the method of korbert.Model for this kind
    command: ClassVar[str] = "predict"  # the same on the command line
    cuts_vectors: ClassVar[bool] = False  # text vectors, too, are of the first max_length pieces
    predicts_untrained: ClassVar[bool] = False  # if True, the encoder without fine-tuning is a baseline
    takes: ClassVar[tuple[str, ...]] = ()  # optional roles that a prediction reads, in addition to `needs`
    compares_rows: ClassVar[bool] = False  # a prediction depends on the other rows
    label_role: ClassVar[str] = "label"  # the role that --label names
    label_fields: ClassVar[tuple[str, ...]] = ()  # fields with labels: tasks that are compared may differ in these
    compared_fields: ClassVar[tuple[str, ...]] = ()  # fields in which tasks that are compared have to agree
    noise: ClassVar[Sequence[str]] = ()  # names in korbert.tasks.noise that apply to its texts
    is_graded: ClassVar[bool] = False  # predictions are more or less near the target, not right or wrong
    loss_unit: ClassVar[Message] = Message("nats")
    result_of_blank: ClassVar[object] = None  # of a row with an empty text, if such rows get no label

    # The order of the fields is that of `task` in config.json: a new field goes last.
    metrics: tuple[str, ...] = Field(min_length=1)
    max_length: int = Field(ge=3)
    columns: Mapping[str, tuple[str, ...]] = {}

    @classmethod
    @abstractmethod
    def from_training_rows(cls, rows: TaskRows, settings: Any) -> Self:
        """The task that the training rows define. CorpusError if they cannot be trained on."""

    @classmethod
    def of_settings(cls, settings: Any, default_metrics: tuple[str, ...], **learned: Any) -> Self:
        """The task with the settings that are its fields, and what it learned.

        default_metrics: the metrics where the settings name none.
        """
        shared = {name: getattr(settings, name) for name in cls.model_fields if hasattr(settings, name)}
        return cls(**{**shared, "metrics": settings.metrics or default_metrics, **learned})

    def validated_on(self, rows: TaskRows) -> Self:
        """The task with the metrics that suit the rows to validate on. Not called if the user chose metrics."""
        return self

    @abstractmethod
    def description(self) -> Message:
        """What is predicted, in a few words."""

    @property
    def reads_pairs(self) -> bool:
        """Whether the encoder reads two texts as one row of pieces; by default as the field `pair` says."""
        return bool(getattr(self, "pair", False))

    @property
    def reads_all(self) -> bool:
        """Whether the model reads texts window by window, not only their first max_length pieces."""
        return False

    @property
    def has_rungs(self) -> bool:
        """Whether the model begins with one that is fitted to words or to vectors of the frozen encoder.

        By default, the field `rungs` tells.
        """
        return bool(getattr(self, "rungs", ("encoder",)) != ("encoder",))

    @property
    def masks_personal(self) -> bool:
        """Whether personal data in its texts is replaced by tags; by default as the field `mask_personal` says."""
        return bool(getattr(self, "mask_personal", False))

    @property
    def needs(self) -> tuple[str, ...]:
        """The roles required for a prediction; by default a text, or a pair."""
        return ("text", "pair") if self.reads_pairs else ("text",)

    def texts(self, row: TaskRow) -> list[str]:
        """The texts of a row to encode; by default those of `needs`. ValueError if one is missing."""
        if self.reads_pairs and row.get("pair") is None:
            raise ValueError(Message("has no second text"))
        return [row[role] for role in self.needs]

    def group_texts(self, row: TaskRow) -> list[str]:
        """The texts by which validation rows are held out: rows that share them stay on the same side."""
        return self.texts(row)

    def with_noise(self, row: TaskRow, change: Callable[[str], str]) -> TaskRow:
        """The row with its texts changed by one of `noise`, and a target that fits them."""
        return {**row, **{role: change(row[role]) for role in self.needs}}

    @abstractmethod
    def target(self, row: TaskRow) -> Any:
        """The correct answer for a row as a JSON value. ValueError if it could never be predicted."""

    def check_training_row(self, row: TaskRow) -> object:
        """Raises ValueError if nothing can be learned from the row; by default, if it has no target."""
        return self.target(row)

    @abstractmethod
    def prepare(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]], tokenizer: AnyTokenizer
    ) -> Prepared:
        """Rows as examples. Rows without a target can be prepared, but not trained on.

        passages: the pieces of the texts of each row, in the order of `texts`.
        """

    def prepare_by_text(
        self, rows: Sequence[TaskRow], passages: Mapping[str, Passage], tokenizer: AnyTokenizer
    ) -> Prepared:
        """As `prepare`. passages: text -> its pieces."""
        return self.prepare(rows, [[passages[text] for text in self.texts(row)] for row in rows], tokenizer)

    @abstractmethod
    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> Network:
        """A model with new weights."""

    def head(self) -> Head:
        """Its head on a frozen encoder. SettingsError if the kind has none."""
        raise SettingsError("features: tasks of kind {name} do not support them: leave features out", name=self.name)

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """{"loss": the mean over the batch}."""

    @abstractmethod
    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        """A prediction for each row, in order. With several connected processes, all get all."""

    def results(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[Any]:
        """The predictions as users of korbert.Model get them: values with named fields, or numbers."""
        predictions = self.predict(model, prepared, **how)
        pairs = zip(predictions, prepared.blank or [False] * len(predictions), strict=True)
        return [self.result_of_blank if is_blank else self.result(prediction) for prediction, is_blank in pairs]

    def result(self, prediction: TaskPrediction) -> Any:
        """A prediction as in `results`."""
        return prediction

    def abstaining(self, precision: float) -> Self:
        """Returns the task that gives labels only where their probability is at least `precision`, in percent.

        SettingsError if the kind cannot abstain.
        """
        raise SettingsError(
            "{option}: models of kind {name} cannot abstain: leave it out", option=argument("abstain"), name=self.name
        )

    def with_reasons(
        self, model: nn.Module, prepared: Prepared, number: int, passages: Sequence[Passage], result: Any
    ) -> Any:
        """Returns a result of `results` with the reasons for it. number: of the row. passages: the row's texts.

        SettingsError if the kind, or the model, cannot give reasons.
        """
        raise SettingsError(
            "{option}: models of kind {name} cannot say why: use korbert look", option=argument("why"), name=self.name
        )

    @property
    def has_chosen_thresholds(self) -> bool:
        """False while a setting, such as a threshold, is still to be chosen from validation predictions."""
        return True

    def with_chosen_thresholds(
        self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]
    ) -> tuple[Self, list[TaskPrediction]]:
        """The task with settings chosen from these validation predictions, and its predictions under them."""
        return self, list(predictions)

    def prompt(self, side: Side) -> str:
        """The prompt before texts of that side of a search; empty if there is none."""
        return ""

    def complete_task(
        self, model: nn.Module, valid: Prepared, read_morphemes: Callable[[], Morphemes], **how: Unpack[Scoring]
    ) -> Self:
        """The task with the fields that need the trained model and validation rows. Called once, in all processes."""
        return self

    @abstractmethod
    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        """Baselines without an encoder: fitted on the training rows, tuned on validation, applied to scored rows."""

    @abstractmethod
    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """The data that scores need per row, (N, ...): a run as in korbert.tasks.metrics.statistics."""

    @abstractmethod
    def score(self, metric: str) -> Score:
        """A metric as a function of such a run. SettingsError for an unsupported metric."""

    def scores(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> dict[str, float | None]:
        """The value of each metric, None if undefined. Needs at least one row."""
        run = self.run(rows, predictions)
        counts = np.ones(len(run), dtype=np.int64)
        return {metric: self.score(metric)(run, counts) for metric in self.metrics}

    def row_scores(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        """The merit of each prediction, (N,): 1 right, 0 wrong; if graded, the negative error; nan if unknown."""
        return np.full(len(rows), np.nan)

    @property
    def example(self) -> tuple[str, str]:
        """For the usage of a model: the name of a file to read, and the arguments of `operation` in Python."""
        if "pair" in self.needs and self.reads_pairs:
            return "pairs.jsonl", "('비가 많이 왔다', '날씨가 궂었다')"
        return "texts.txt", "'정말 재미있는 영화였다'"

    def details(self, prepared: Prepared, predictions: Sequence[TaskPrediction]) -> JsonObject:
        """Explains predictions of scored rows, as JSON: causes of wrong answers, for example; empty by default."""
        return {}

    @classmethod
    def of_task(cls, fields: JsonObject, place: str | Path) -> Self:
        """The inverse of `task`, without `kind`. ModelError, with file and field, if one is invalid.

        place: the model's folder, or the scores.json of an artifact that holds the task, too.
        """
        try:
            return cls.model_validate(fields)
        except (ValidationError, ArithmeticError) as error:
            first: Mapping[str, Any] = {"loc": (), "msg": str(error)}
            if isinstance(error, ValidationError):
                first = error.errors()[0]
            # An artifact is named by its scores.json, a model by its folder.
            file = Path(place) if Path(place).suffix == ".json" else model_folder(place) / "config.json"
            raise ModelError(
                "{file}: {field}: {fault}: put the file back as it was written",
                file=file, field=".".join(map(str, ("task", *first["loc"]))),
                fault=first["msg"].replace("\n", " "),
            ) from None  # fmt: skip

    def task(self) -> JsonObject:
        """The fields saved with the model, as JSON values."""
        return {"kind": self.name, **self.model_dump(mode="json")}


class TaughtKind(Kind, ABC, frozen=True):
    """A kind of task that supports knowledge distillation.

    teacher_fields: fields that teacher and student must share; if there are any, also the tokenizer.
    """

    teacher_fields: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def teacher_outputs(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> TeacherOutputs:
        """The outputs of a teacher of this kind for rows."""

    @abstractmethod
    def soft_targets(self, outputs: TeacherOutputs, teacher: Any, prepared: Prepared) -> NDArray[np.float32]:
        """A teacher's outputs as targets of the student's examples, in the order of the student's labels.

        (N, C), or (P, C) if each piece has a target; zeros for pieces without an output. teacher: its kind.
        """

    @abstractmethod
    def with_soft_targets(self, prepared: Prepared, soft: NDArray[np.float32], labelled: int) -> Prepared:
        """Examples with `soft` as their targets; for the first `labelled` rows, the mean of `soft` and the labels."""


def checked_precision(precision: float) -> float:
    """A percentage above 0 and below 100. SettingsError for others."""
    if not 0 < precision < 100:
        raise SettingsError(
            "{option} {precision}: give a percentage above 0 and below 100",
            option=argument("abstain"), precision=precision,
        )  # fmt: skip
    return precision


_T = TypeVar("_T")


def score_named(known: Mapping[str, _T], metric: str) -> _T:
    """The score of that name. SettingsError if there is none."""
    if metric not in known:
        raise SettingsError(
            "metrics: {metric!r} is not a score of this task: use one of {known}", metric=metric, known=", ".join(known)
        )
    return known[metric]
