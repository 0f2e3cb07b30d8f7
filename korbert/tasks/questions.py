"""Gold answers to questions, and how predictions are compared with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Answer", "AnswerMetrics"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A gold answer: `context[start : start + len(text)] == text`, start in code points."""

    text: str
    start: int

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.start + len(self.text)


class AnswerMetrics(NamedTuple):
    """Scores of a prediction against the gold answers: exact match, and overlap from 0 to 1."""

    exact_match: Callable[[str, Sequence[str]], bool]
    f1: Callable[[str, Sequence[str]], float]
