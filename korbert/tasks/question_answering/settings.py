"""Settings of reading comprehension: windows, answer selection and training."""

from typing import Self

from pydantic import BaseModel, Field, model_validator

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


class QuestionAnsweringSettings(WindowSettings, frozen=True, extra="forbid"):
    """Inference settings of a question answering model, stored with it."""

    unanswerable: bool = Field(False, description="whether questions may have no answer")
    threshold: float = Field(
        0.0,
        allow_inf_nan=False,
        description="no answer is given if the no-answer score exceeds the best answer's by more than this; only "
        "with unanswerable",
    )

    @model_validator(mode="after")
    def _threshold_is_used(self) -> Self:
        if self.threshold and not self.unanswerable:
            raise ValueError(f"threshold {self.threshold} is for unanswerable = true: set it, or leave threshold out")
        return self
