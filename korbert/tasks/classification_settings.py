"""Settings of classification: training a classifier, and a whole classification task."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from korbert.tasks.learning_settings import LearningSettings

__all__ = ["ClassificationSettings", "ClassificationTaskSettings"]

_Rate = Annotated[float, Field(gt=0)]


class ClassificationSettings(LearningSettings, frozen=True, extra="forbid"):
    """Training settings of a classifier."""

    pooling: Literal["mean", "first"] = Field(
        "mean", description="text vector: mean over pieces, or that of the first piece"
    )


class ClassificationTaskSettings(ClassificationSettings, frozen=True, extra="forbid"):
    """A classification task: its files, how the best training is chosen, and the baselines."""

    train: str = Field(description="official training file, relative to the data folder")
    test: str = Field(description="official test file, relative to the data folder")
    init: Literal["pretrain", "scratch"] = Field(
        "pretrain",
        description="initial weights of the main row: from the pretrain stage, or random for the same encoder",
    )
    scratch: bool = Field(True, description="if init is pretrain, also train the same encoder from random weights")
    validation_share: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="share of training texts, by hash of the id, used to select epoch, learning rate and C",
    )
    baseline_c: tuple[_Rate, ...] = Field(
        (0.5, 1.0, 2.0, 4.0),
        min_length=1,
        description="values of C (inverse regularization strength) to try in the TF-IDF baseline",
    )
    note: str = Field("", description="remark saved with the scores, such as the origin of the training file")

    @model_validator(mode="after")
    def _values_of_c_differ(self) -> Self:
        if len(set(self.baseline_c)) < len(self.baseline_c):
            raise ValueError(f"baseline_c {list(self.baseline_c)} has duplicates: give each value once")
        return self

    def patterns(self) -> dict[str, str]:
        """Role -> pattern of the files that the task reads, relative to the data folder."""
        return {"train": self.train, "test": self.test}
