"""Settings of classification: how a classifier is learned, and what a task of labelled texts is made of."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from korbert.training.settings import OptimizerSettings, PrecisionName

__all__ = ["ClassificationSettings", "ClassificationTaskSettings"]

_Rate = Annotated[float, Field(gt=0)]
_Seed = Annotated[int, Field(ge=0)]


class ClassificationSettings(BaseModel, frozen=True, extra="forbid"):
    """How a classifier is learned from labelled texts. Every seed and every rate is a training of its own."""

    pooling: Literal["mean", "first"] = Field(
        "mean", description="text vector: mean over all pieces, or the vector of the first piece"
    )
    max_length: int = Field(
        128, ge=3, description="maximum pieces per text, special tokens included; longer texts are truncated"
    )
    batch_size: int = Field(32, ge=1, description="texts per step")
    epochs: int = Field(3, ge=1, description="passes over the training texts; the best epoch by validation is kept")
    learning_rates: tuple[_Rate, ...] = Field(
        (2e-4,), min_length=1, description="peak learning rates to try; validation chooses one"
    )
    seeds: tuple[_Seed, ...] = Field(
        (0,),
        min_length=1,
        description="random seeds of order, dropout and new weights; the first one chooses the learning rate",
    )
    weight_decay: float = Field(
        0.01, ge=0, description="AdamW weight decay, multiplied by the learning rate; none on norms and biases"
    )
    warmup_share: float = Field(0.06, ge=0, lt=1, description="share of all steps that warm up the learning rate")
    precision: PrecisionName = Field(
        "auto", description="training precision; auto: bf16 if the device is faster in it, else fp32"
    )
    threads: int = Field(2, ge=1, description="CPU threads of training; another number gives other bytes")
    log_every: int = Field(10, ge=1, description="steps between lines of metrics.jsonl")
    checkpoint_every: int = Field(500, ge=1, description="steps between checkpoints")

    def optimizer(self, learning_rate: float) -> OptimizerSettings:
        """What `fit` needs, at one of the rates."""
        return OptimizerSettings(
            learning_rate=learning_rate, weight_decay=self.weight_decay, warmup_share=self.warmup_share
        )


class ClassificationTaskSettings(ClassificationSettings, frozen=True, extra="forbid"):
    """A task of labelled texts: its files, what chooses among the trainings, and what the encoder is compared with."""

    train: str = Field(description="official training file, relative to the data folder")
    test: str = Field(description="official test file, relative to the data folder")
    init: Literal["pretrain", "scratch"] = Field(
        "pretrain",
        description="initial weights of the main row: the pretrain stage's, or random ones of the same encoder",
    )
    scratch: bool = Field(True, description="if init is pretrain, also train the same encoder from random weights")
    validation_share: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="share of training texts, by hash of the id, that validate epoch, learning rate and C",
    )
    baseline_c: tuple[_Rate, ...] = Field(
        (0.5, 1.0, 2.0, 4.0),
        min_length=1,
        description="values of C (inverse regularization strength) to try in the TF-IDF baseline",
    )
    note: str = Field("", description="a remark to save with the scores, such as the origin of the training file")

    @model_validator(mode="after")
    def _choices_differ(self) -> Self:
        for name in ("learning_rates", "seeds", "baseline_c"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} {list(values)} has a value twice: name each once")
        return self

    def patterns(self) -> dict[str, str]:
        """Role -> file pattern, relative to the data folder, of what the task reads."""
        return {"train": self.train, "test": self.test}
