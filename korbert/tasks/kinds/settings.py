"""Task sections of a recipe, one class per kind: data, training, and settings of the kind. Imports no torch."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from korbert.modeling.feature_settings import FeatureSettings
from korbert.tasks.files.form import Form
from korbert.tasks.learning_settings import LearningSettings, Numbers
from korbert.tasks.reading_settings import WindowSettings

__all__ = [
    "ChoiceSection",
    "ClassificationSection",
    "EmbeddingSection",
    "ReadingSection",
    "RegressionSection",
    "SlotsSection",
    "TaggingSection",
    "TaskSection",
]

_Columns = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]


class TaskSection(LearningSettings, frozen=True, extra="forbid"):
    """A task of any kind: its files, initial weights, and training."""

    set: str = Field("", description="a known data set, as `korbert tasks` lists them; its files are below --data")
    train: str = Field("", description="training file, relative to the data folder; a pattern may match several")
    valid: str = Field("", description="validation file; without, a share of the training rows")
    test: str = Field("", description="test file, scored once a seed; without, validation scores are all there is")
    form: Form = Field("auto", description="format of the files; auto: by their ending, else by their content")
    columns: Mapping[str, _Columns] = Field({}, description='columns by role, as in { text = "문장", label = "감정" }')
    validation_share: float = Field(
        0.1, gt=0, lt=1, description="share of the training rows that validate, by hash of their text, without `valid`"
    )
    train_rows: int | None = Field(
        None,
        ge=2,
        description="maximum training rows, those that validate included, chosen by hash of their text; none: all",
    )
    metrics: tuple[str, ...] = Field((), description="scores, the one that makes choices first; none: the kind's")
    init: str = Field(
        "pretrain", description='where it begins: "pretrain" (of this recipe), "scratch", or a folder of a model'
    )
    scratch: bool = Field(False, description="also train the same encoder from random weights, as a row of its own")
    epochs: Numbers = Field(
        (),
        description="passes over the training examples, one number or a list; the best is kept; none: 3, or up to 20 "
        "to reach 200 steps",
    )
    overlap: bool = Field(
        True,
        description="add an embedding to pieces that occur in both texts; transformers cannot load such a model",
    )
    features: FeatureSettings | None = Field(
        None, description="freeze the encoder, and teach a head on the vectors of some layers; none: all weights learn"
    )
    baselines: bool = Field(True, description="also score what needs no encoder: the majority, TF-IDF, a dictionary")
    note: str = Field("", description="a remark to save with the scores")

    @model_validator(mode="before")
    @classmethod
    def _heads_learn_faster(cls, values: Any) -> Any:
        """Defaults for a head on a frozen encoder, which needs a higher learning rate and more epochs."""
        if isinstance(values, Mapping) and values.get("features") is not None:
            return {"learning_rates": 3e-3, "epochs": 20, **values}
        return values

    @model_validator(mode="after")
    def _features_stay(self) -> Self:
        if self.features is not None and (self.layer_decay < 1 or self.frozen_layers or self.lora):
            raise ValueError(
                "features: the whole encoder is frozen then: leave layer_decay, frozen_layers and lora out"
            )
        return self

    @model_validator(mode="after")
    def _files_are_named(self) -> Self:
        if bool(self.set) == bool(self.train):
            what = "both are given" if self.set else "neither is given"
            raise ValueError(f"set or train: {what}: name a known data set, or a training file")
        if self.set and (self.valid or self.test or self.columns):
            raise ValueError(f"set {self.set!r} has its own files: leave valid, test and columns out")
        return self

    @model_serializer(mode="wrap")
    def _without_no_limit(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omits train_rows if unset, so that older records keep their digests."""
        record: dict[str, Any] = serialize(self)
        return {name: value for name, value in record.items() if name != "train_rows" or value is not None}

    def patterns(self) -> dict[str, str]:
        """Role -> pattern of the files that the task reads, relative to the data folder."""
        return {name: value for name in ("train", "valid", "test") if (value := getattr(self, name))}


class ClassificationSection(TaskSection, frozen=True, extra="forbid"):
    """Labels of a text or a pair of texts."""

    kind: Literal["classification"] = "classification"
    pooling: Literal["mean", "first"] = Field(
        "mean", description="text vector: mean over all pieces, or that of the first piece"
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="balanced: a label weighs the more in the loss the rarer it is"
    )
    uncounted: str = Field("", description="label that micro_f1 leaves out, as KLUE-RE does no_relation")
    several: bool = Field(
        False, description="a text has any number of labels: a list, or labels between bars or commas"
    )


class RegressionSection(TaskSection, frozen=True, extra="forbid"):
    """A number for a text or a pair of texts."""

    kind: Literal["regression"] = "regression"
    pooling: Literal["mean", "first"] = Field(
        "mean", description="text vector: mean over all pieces, or that of the first piece"
    )


class ChoiceSection(TaskSection, frozen=True, extra="forbid"):
    """The correct one of several continuations or answers."""

    kind: Literal["choice"] = "choice"
    pooling: Literal["mean", "first"] = Field(
        "mean", description="text vector: mean over all pieces, or that of the first piece"
    )


class TaggingSection(TaskSection, frozen=True, extra="forbid"):
    """Labels of spans or words."""

    kind: Literal["tagging"] = "tagging"
    stride: int | None = Field(None, ge=0, description="pieces that windows of a long text share; none: a quarter")


class ReadingSection(WindowSettings, TaskSection, frozen=True, extra="forbid"):
    """Answers to questions, extracted from texts."""

    kind: Literal["reading"] = "reading"
    unanswerable: bool | None = Field(
        None, description="whether a question may be left without an answer; none: if a training question has none"
    )


class SlotsSection(WindowSettings, TaskSection, frozen=True, extra="forbid"):
    """Values of described slots, extracted from texts; the description takes the place of a question."""

    kind: Literal["slots"] = "slots"


class EmbeddingSection(TaskSection, frozen=True, extra="forbid"):
    """Text embeddings: similar texts get nearby vectors."""

    kind: Literal["embedding"] = "embedding"
    pooling: Literal["mean", "first"] = Field(
        "mean", description="text vector: mean over all pieces, or that of the first piece"
    )
    normalize: bool = Field(False, description="scale the vectors to length 1")
    near: _Columns = Field(("entailment",), description="labels of pairs that are near, as in NLI")
    far: _Columns = Field(("contradiction",), description="labels of pairs that are far; other rows are left out")
    temperature: float = Field(
        0.05, gt=0, description="of the softmax over the cosines of a batch, without scores (Gao et al. 2021)"
    )
    dropout: float = Field(
        0.1, ge=0, lt=1, description="least dropout of the encoder; learning from texts alone takes two draws of it"
    )
