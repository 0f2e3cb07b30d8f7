"""Settings of the korquad stage: those of any reading task, with KorQuAD's files as defaults."""

from pydantic import Field

from korbert.tasks.reading_settings import ReadingTaskSettings

__all__ = ["KorquadSettings"]


class KorquadSettings(ReadingTaskSettings, frozen=True, extra="forbid"):
    """The korquad stage: learn on questions with answers, score on others, leave a submission."""

    train: str = Field("korquad1/KorQuAD_v1.0_train.json", description="official training file")
    valid: str = Field("korquad1/KorQuAD_v1.0_dev.json", description="official evaluation file")
    official: str = Field(
        "korquad1/KorQuAD_v1.0_dev.json", description="file to split with split_by_article; replaces train and valid"
    )
