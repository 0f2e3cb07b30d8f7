"""Settings of reading comprehension: how a text is cut into windows and answers are chosen, how a reader is learned."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from korbert.modeling.config import EncoderConfig
from korbert.training.settings import OptimizerSettings, PrecisionName

__all__ = ["SPECIAL_TOKENS", "ReadingSettings", "ReadingTaskSettings"]

SPECIAL_TOKENS = 3  # [CLS] question [SEP] context [SEP]


class ReadingSettings(BaseModel, frozen=True, extra="forbid"):
    """What a reading model needs to answer, and what travels with it. Lengths are in pieces, unless named otherwise."""

    max_length: int = Field(384, ge=8, description="pieces of a window: question, context and three special tokens")
    stride: int = Field(128, ge=0, description="pieces of context that two neighbouring windows share")
    max_query_pieces: int = Field(64, ge=1, description="pieces that are kept of a question, from its start")
    max_answer_chars: int = Field(50, ge=1, description="characters of the longest answer that is considered")
    n_best: int = Field(20, ge=1, description="answers that are kept of a question, the best one first")

    @model_validator(mode="after")
    def _windows_advance(self) -> Self:
        room = self.max_length - SPECIAL_TOKENS - self.max_query_pieces
        if room <= self.stride:
            raise ValueError(
                f"max_length {self.max_length} leaves {room} pieces of context beside a question of max_query_pieces "
                f"{self.max_query_pieces}, and needs more than stride {self.stride}: raise max_length or lower stride"
            )
        return self


class ReadingTaskSettings(ReadingSettings, frozen=True, extra="forbid"):
    """A reading task: its files, the weights to begin with, and how a reader is learned."""

    train: str = Field(description="official file to learn from")
    valid: str = Field(description="official file to score on")
    official: str = Field(description="the one file that split_by_article cuts, instead of both")
    split_by_article: bool = Field(False, description="learn and score on two parts of one file, cut by article")
    init: Literal["pretrain", "scratch"] = Field(
        "pretrain", description="weights to begin with: the pretrain stage's, or those of an untrained `encoder`"
    )
    encoder: EncoderConfig | None = Field(
        None, description='with init = "scratch" alone; vocab_size is the vocabulary\'s, whatever stands here'
    )
    epochs: float = Field(3.0, gt=0, description="passes over all training windows")
    batch_size: int = Field(32, ge=1, description="windows a step")
    micro_batches: int = Field(1, ge=1, description="parts that a step's windows are run in, to save memory")
    optimizer: OptimizerSettings = Field(
        OptimizerSettings(learning_rate=3e-4), description="AdamW, its rate and its schedule"
    )
    precision: PrecisionName = Field(
        "auto", description="arithmetic of training: fp32, bf16, or what the device does best"
    )
    threads: int = Field(2, ge=1, description="processor threads of training; other numbers give other bytes")
    seed: int = Field(0, ge=0, description="of the order of windows, of dropout and of new weights")
    log_every: int = Field(10, ge=1, description="steps")
    checkpoint_every: int = Field(200, ge=1, description="steps")

    @model_validator(mode="after")
    def _encoder_is_known_once(self) -> Self:
        if (self.init == "scratch") != (self.encoder is not None):
            raise ValueError(
                f'init is "{self.init}" and encoder is {"set" if self.encoder else "not set"}: '
                'give sizes of an encoder with init = "scratch", and only then'
            )
        if self.encoder and self.encoder.max_position_embeddings < self.max_length:
            raise ValueError(
                f"max_length {self.max_length} is more than the encoder's max_position_embeddings "
                f"{self.encoder.max_position_embeddings}: lower the one or raise the other"
            )
        return self

    def reading(self) -> ReadingSettings:
        """The part that a model needs to answer."""
        return ReadingSettings(**{name: getattr(self, name) for name in ReadingSettings.model_fields})

    def patterns(self) -> dict[str, str]:
        """Role -> file pattern, relative to the data folder, of what the task reads."""
        return {"official": self.official} if self.split_by_article else {"train": self.train, "valid": self.valid}
