"""Sections of a recipe that join settings of several rooms."""

from typing import Self

from pydantic import BaseModel, Field, field_validator, model_validator

from corpus.settings import ShardSettings, VocabSettings
from korbert.modeling.config import EncoderConfig
from korbert.pretraining.settings import HeadSettings, MaskingSettings, ObjectiveName, PairSettings
from korbert.training.settings import OptimizerSettings, PrecisionName

__all__ = ["EncoderSection", "HeldOut", "Phase", "PretrainStage", "ShardStage", "VocabStage"]


class HeldOut(BaseModel, frozen=True, extra="forbid"):
    """What no vocabulary and no training sees."""

    seed: int = Field(0, ge=0, description="random seed")
    heldout_share: float = Field(
        0.01, gt=0, lt=1, description="share of documents that are held out, by hash of their id"
    )


class VocabStage(VocabSettings, HeldOut, frozen=True, extra="forbid"):
    """[vocab]"""


class ShardStage(ShardSettings, HeldOut, frozen=True, extra="forbid"):
    """[shard]"""


class Phase(BaseModel, frozen=True, extra="forbid"):
    """A stretch of pretraining at one length."""

    length: int = Field(128, ge=8, description="pieces per row, special tokens included")
    batch_size: int = Field(32, ge=1, description="rows per step")
    steps: int = Field(ge=1, description="optimizer updates")
    micro_batches: int = Field(
        1, ge=1, description="gradient accumulation: parts that a step's rows are split into, to save memory"
    )
    fill: bool = Field(
        False,
        description="fill rows with as many examples as fit; none sees another, and each counts its own positions",
    )


class EncoderSection(EncoderConfig, frozen=True, extra="forbid"):
    """[pretrain.encoder]: an encoder whose vocabulary is not known yet."""

    vocab_size: int = Field(1, ge=1, le=1, exclude=True, description="not a setting: it is the tokenizer's")

    def config(self, vocab_size: int) -> EncoderConfig:
        """The encoder over a vocabulary of that size."""
        return EncoderConfig(vocab_size=vocab_size, **self.model_dump())


class PretrainStage(BaseModel, frozen=True, extra="forbid"):
    """[pretrain]"""

    precision: PrecisionName = Field(
        "auto", description="training precision; auto: bf16 if the device has instructions for it, else fp32"
    )
    threads: int = Field(2, ge=1, description="CPU threads of training; another number gives other bytes")
    seed: int = Field(0, ge=0, description="random seed of weights, rows and masks")
    encoder: EncoderSection
    phases: tuple[Phase, ...] = Field(min_length=1, description="run in this order under one learning rate schedule")
    objectives: tuple[ObjectiveName, ...] = Field(
        ("mlm", "nsp"),
        description="mlm: masked pieces; nsp: whether segment B follows A; without it a row is one segment",
    )
    head: HeadSettings = HeadSettings()
    masking: MaskingSettings = MaskingSettings()
    pairs: PairSettings = PairSettings()
    optimizer: OptimizerSettings
    log_every: int = Field(10, ge=1, description="steps between lines of metrics.jsonl")
    evaluate_every: int = Field(200, ge=1, description="steps between evaluations on held-out rows")
    checkpoint_every: int = Field(200, ge=1, description="steps between checkpoints")
    heldout_rows: int = Field(2_000, ge=1, description="maximum held-out rows per evaluation")

    @model_validator(mode="after")
    def _positions_reach(self) -> Self:
        longest = max(phase.length for phase in self.phases)
        if longest > self.encoder.max_position_embeddings:
            raise ValueError(
                f"a phase has length {longest}, the encoder {self.encoder.max_position_embeddings} positions: "
                "raise encoder.max_position_embeddings"
            )
        return self

    @field_validator("objectives")
    @classmethod
    def _mlm_is_there(cls, objectives: tuple[ObjectiveName, ...]) -> tuple[ObjectiveName, ...]:
        if "mlm" not in objectives or len(set(objectives)) < len(objectives):
            raise ValueError('say ["mlm", "nsp"] or ["mlm"]')
        return objectives
