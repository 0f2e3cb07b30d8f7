"""Settings of reading comprehension: windows and answer selection."""

from typing import Self

from pydantic import BaseModel, Field, model_validator

from korbert.messages import Message

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
                Message(
                    "max_length {max_length} leaves {room} pieces of context next to a question of max_query_pieces "
                    "{max_query_pieces}, and needs more than stride {stride}: raise max_length or lower stride",
                    max_length=self.max_length, room=room, max_query_pieces=self.max_query_pieces, stride=self.stride,
                )
            )  # fmt: skip
        return self
