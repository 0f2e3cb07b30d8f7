"""Settings of the nsmc stage: those of any classification task, with NSMC's files as defaults."""

from pydantic import Field

from korbert.tasks.classification_settings import ClassificationTaskSettings

__all__ = ["NsmcSettings"]


class NsmcSettings(ClassificationTaskSettings, frozen=True, extra="forbid"):
    """The nsmc stage: classifiers, each chosen on held-out training reviews, scored on test reviews, and compared."""

    train: str = Field("nsmc/ratings_train.txt", description="official training file, relative to the data folder")
    test: str = Field("nsmc/ratings_test.txt", description="official test file, relative to the data folder")
    validation_share: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="share of training reviews, by hash of the id, used to select epoch, learning rate and C",
    )
