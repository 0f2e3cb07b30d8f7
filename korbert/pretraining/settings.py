"""Settings of masking and of sentence pairs."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

__all__ = ["HeadSettings", "MaskingSettings", "ObjectiveName", "PairSettings"]

ObjectiveName = Literal["mlm", "nsp"]


class HeadSettings(BaseModel, frozen=True, extra="forbid"):
    """How a step's predictions are scored over the vocabulary. Held-out figures are always over all of it."""

    kind: Literal["full", "sampled"] = Field(
        "full", description="full: all entries; sampled: the label and some others, which costs a fraction"
    )
    negatives: int = Field(
        4_096, ge=1, description="sampled: entries drawn for a step, by how often they occur in the training text"
    )
    z_loss: float = Field(
        0.0, ge=0, description="weight of (log Z)^2 in the loss, which keeps the scores from drifting; 1e-4 is usual"
    )


class MaskingSettings(BaseModel, frozen=True, extra="forbid"):
    """How pieces are chosen for prediction, and what replaces them (MLM; Devlin et al. 2019, 3.1 and A.1)."""

    rate: float = Field(0.15, gt=0, lt=1, description="share of a row's pieces to predict, special tokens not counted")
    unit: Literal["piece", "morpheme", "eojeol"] = Field("morpheme", description="unit that is masked as a whole")
    mask_share: float = Field(0.8, ge=0, le=1, description="share of the chosen pieces replaced by [MASK]")
    random_share: float = Field(
        0.1, ge=0, le=1, description="share replaced by a random piece; the rest is left unchanged"
    )

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.mask_share + self.random_share > 1:
            raise ValueError(f"mask_share {self.mask_share} + random_share {self.random_share} > 1: lower one of them")
        return self


class PairSettings(BaseModel, frozen=True, extra="forbid"):
    """How segment B of a row is chosen (NSP)."""

    share_random: float = Field(
        0.5, ge=0, le=1, description="share of labelled pairs whose B comes from another document"
    )
    without: tuple[str, ...] = Field((), description="sources without NSP pairs; by default those with pairs = false")
    tries: int = Field(
        16,
        ge=1,
        description="searches for a random B of the right length, 32 positions each; rows without one have no label",
    )
