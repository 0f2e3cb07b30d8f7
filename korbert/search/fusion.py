"""Fusing the rankings by words and by vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Hit", "Ranking", "fused"]

Ranking = list[tuple[int, float]]
"""Numbers of texts and their scores, best first."""

_CONSTANT = 60  # Cormack, Clarke and Buettcher 2009: low ranks count little, and no single first rank decides


@dataclass(frozen=True)
class Hit:
    """A search result. score: the sort key: BM25 of words, the cosine of vectors, or the sum of reciprocal ranks of
    both. Ranks begin at 1; None where a way did not find the text or was not used. fields: as they were added."""

    id: str
    text: str
    score: float
    rank_vectors: int | None
    rank_words: int | None
    score_vectors: float | None
    score_words: float | None
    fields: dict[str, Any] = field(default_factory=dict)


def fused(rankings: Sequence[Ranking]) -> Ranking:
    """Reciprocal rank fusion: all texts of the rankings by the sum of 1 / (60 + rank); ties by number."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, (number, _) in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_CONSTANT + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
