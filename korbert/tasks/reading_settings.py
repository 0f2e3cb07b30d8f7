"""Settings of reading comprehension: how a text is cut into windows, and how answers are chosen."""

from typing import Self

from pydantic import BaseModel, Field, model_validator

__all__ = ["SPECIAL_TOKENS", "ReadingSettings"]

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
