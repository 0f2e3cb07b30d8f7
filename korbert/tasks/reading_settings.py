"""Settings of reading comprehension: windows, answer selection and training."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from korbert.modeling.config import EncoderConfig
from korbert.tasks.saved import of_config
from korbert.training.settings import OptimizerSettings, PrecisionName

__all__ = ["ReadingOptimizer", "ReadingSettings", "ReadingTaskSettings", "WindowSettings"]

_SPECIAL_TOKENS = 4  # the most that a pair has: <s> question </s></s> context </s> (RoBERTa)


class WindowSettings(BaseModel, frozen=True, extra="forbid"):
    """How windows are cut and spans are chosen. Lengths are in pieces, unless named otherwise."""

    max_length: int = Field(384, ge=8, description="pieces per window: question, context and special tokens")
    stride: int = Field(128, ge=0, description="context pieces shared by adjacent windows")
    max_query_pieces: int = Field(64, ge=1, description="maximum pieces per question; longer questions are truncated")
    max_answer_chars: int = Field(50, ge=1, description="maximum characters of an answer")
    n_best: int = Field(20, ge=1, description="answers kept per question, best first")

    @model_validator(mode="after")
    def _windows_advance(self) -> Self:
        room = self.max_length - _SPECIAL_TOKENS - self.max_query_pieces
        if room <= self.stride:
            raise ValueError(
                f"max_length {self.max_length} leaves {room} pieces of context beside a question of max_query_pieces "
                f"{self.max_query_pieces}, and needs more than stride {self.stride}: raise max_length or lower stride"
            )
        return self


class ReadingSettings(WindowSettings, frozen=True, extra="forbid"):
    """Inference settings of a reading model, stored with it."""

    unanswerable: bool = Field(False, description="whether questions may have no answer")
    threshold: float = Field(
        0.0,
        allow_inf_nan=False,
        description="no answer is given if the no-answer score exceeds the best answer's by more than this; only "
        "with unanswerable",
    )

    @classmethod
    def of_task(cls, task: Mapping[str, Any], folder: str | Path) -> Self:
        """Parses `task` of a model's config.json; `korbert finetune` adds fields of a kind (kinds/base.py).

        ModelError, which names `folder`, for an invalid field.
        """
        of_kind = ("kind", "metrics", "columns")
        return of_config(cls, {name: value for name, value in task.items() if name not in of_kind}, folder)

    @model_validator(mode="after")
    def _threshold_is_used(self) -> Self:
        if self.threshold and not self.unanswerable:
            raise ValueError(f"threshold {self.threshold} is for unanswerable = true: set it, or leave threshold out")
        return self


class ReadingOptimizer(OptimizerSettings, frozen=True, extra="forbid"):
    """The optimizer of a reading task."""

    learning_rate: float = Field(3e-4, gt=0, description="peak learning rate, reached at the end of warmup")


class ReadingTaskSettings(WindowSettings, frozen=True, extra="forbid"):
    """A reading task: its files, initial weights and training."""

    train: str = Field(description="official training file")
    valid: str = Field(description="official evaluation file")
    official: str = Field(description="file to split with split_by_article; replaces train and valid")
    split_by_article: bool = Field(
        False, description="split one file by article into a training part and a scored part"
    )
    init: Literal["pretrain", "scratch"] = Field(
        "pretrain", description="initial weights: from the pretrain stage, or random for `encoder`"
    )
    encoder: EncoderConfig | None = Field(
        None, description='only with init = "scratch"; its vocab_size is always the tokenizer\'s'
    )
    warm_up: str = Field(
        "",
        description="file of questions to train on before train (see `korbert questions`), without text of valid; "
        '"": none',
    )
    warm_up_epochs: float = Field(1.0, gt=0, description="epochs over the windows of warm_up")
    epochs: float = Field(3.0, gt=0, description="epochs over all training windows")
    batch_size: int = Field(32, ge=1, description="windows per step")
    micro_batches: int = Field(
        1, ge=1, description="gradient accumulation: number of parts a step's windows are split into, to save memory"
    )
    optimizer: ReadingOptimizer = Field(
        ReadingOptimizer(), description="optimizer and learning rate schedule; its learning_rate is 0.0003 by default"
    )
    precision: PrecisionName = Field("auto", description="training precision; auto: bf16 where it is faster, else fp32")
    threads: int = Field(2, ge=1, description="CPU threads for training; a different number gives different bytes")
    overlap: bool = Field(
        True,
        description="add an embedding to pieces that occur in both texts; transformers needs trust_remote_code then",
    )
    frozen_embeddings: bool = Field(
        False,
        description="freeze the piece embeddings alone: the model packs small beside its base (korbert pack)",
    )
    seed: int = Field(0, ge=0, description="random seed of window order, dropout and new weights")
    log_every: int = Field(10, ge=1, description="steps between lines of metrics.jsonl")
    checkpoint_every: int = Field(200, ge=1, description="steps between checkpoints")

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
        """The settings needed for inference."""
        return ReadingSettings(**{name: getattr(self, name) for name in WindowSettings.model_fields})

    def patterns(self) -> dict[str, str]:
        """Role -> pattern of the files that the task reads, relative to the data folder."""
        own = {"official": self.official} if self.split_by_article else {"train": self.train, "valid": self.valid}
        return own | ({"warm_up": self.warm_up} if self.warm_up else {})
