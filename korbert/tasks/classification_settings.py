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
        "mean", description="vector of a text: the mean over its pieces, or the one of its first piece"
    )
    max_length: int = Field(128, ge=3, description="pieces of a text, special tokens included; the rest is cut off")
    batch_size: int = Field(32, ge=1, description="texts a step")
    epochs: int = Field(3, ge=1, description="passes over the training texts; the best one by validation is kept")
    learning_rates: tuple[_Rate, ...] = Field(
        (2e-4,), min_length=1, description="AdamW rates at the end of warmup to choose from by validation"
    )
    seeds: tuple[_Seed, ...] = Field(
        (0,), min_length=1, description="seeds of order, dropout and new weights; the first one chooses the rate"
    )
    weight_decay: float = Field(0.01, ge=0, description="AdamW's decay of matrices, a fraction of the rate")
    warmup_share: float = Field(0.06, ge=0, lt=1, description="share of all steps in which the rate rises to its peak")
    precision: PrecisionName = Field(
        "auto", description="arithmetic of training: fp32, bf16, or what the device does best"
    )
    threads: int = Field(2, ge=1, description="processor threads of training; other numbers give other bytes")
    log_every: int = Field(10, ge=1, description="steps")
    checkpoint_every: int = Field(500, ge=1, description="steps")

    def optimizer(self, learning_rate: float) -> OptimizerSettings:
        """What `fit` needs, at one of the rates."""
        return OptimizerSettings(
            learning_rate=learning_rate, weight_decay=self.weight_decay, warmup_share=self.warmup_share
        )


class ClassificationTaskSettings(ClassificationSettings, frozen=True, extra="forbid"):
    """A task of labelled texts: its files, what chooses among the trainings, and what the encoder is compared with."""

    train: str = Field(description="official file to learn from, relative to the data folder")
    test: str = Field(description="official file to score on, relative to the data folder")
    init: Literal["pretrain", "scratch"] = Field(
        "pretrain",
        description="weights that the main row begins with: the pretrain stage's, or fresh ones of the same encoder",
    )
    scratch: bool = Field(True, description="beside a pretrained row, learn the same encoder from untrained weights")
    validation_share: float = Field(
        0.05, gt=0, lt=1, description="share of the training texts, by hash of the id, that choose epoch, rate and C"
    )
    baseline_c: tuple[_Rate, ...] = Field(
        (0.5, 1.0, 2.0, 4.0),
        min_length=1,
        description="C (inverse strength of the penalty) of the TF-IDF baseline's logistic regression to choose from",
    )
    note: str = Field("", description="what has to stand beside the scores, such as where a training file is from")

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
