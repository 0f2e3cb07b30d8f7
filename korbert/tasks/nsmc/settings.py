"""Settings of the nsmc stage: its files, and what the trained encoder is compared with."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from korbert.tasks.classification_settings import ClassificationSettings

__all__ = ["NsmcSettings"]

_Rate = Annotated[float, Field(gt=0)]


class NsmcSettings(ClassificationSettings, frozen=True, extra="forbid"):
    """The nsmc stage: classifiers, each chosen on held-out training reviews, scored on test reviews, and compared."""

    train: str = Field("nsmc/ratings_train.txt", description="official file to learn from, relative to the data folder")
    test: str = Field("nsmc/ratings_test.txt", description="official file to score on, relative to the data folder")
    init: Literal["pretrain", "scratch"] = Field(
        "pretrain",
        description="weights that the main row begins with: the pretrain stage's, or fresh ones of the same encoder",
    )
    scratch: bool = Field(True, description="beside a pretrained row, learn the same encoder from untrained weights")
    validation_share: float = Field(
        0.05, gt=0, lt=1, description="share of the training reviews, by hash of the id, that choose epoch, rate and C"
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
