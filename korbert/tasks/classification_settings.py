"""Settings of classification: how texts are cut and pooled, and how a classifier is learned."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from korbert.training.settings import OptimizerSettings, PrecisionName

__all__ = ["ClassificationSettings"]

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
