"""Fusing two rankings of the same texts."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Found", "Hit", "joined"]

Found = tuple[int, float]
"""The row of a text, and its score. Lists are sorted, best first."""

_CONSTANT = 60  # Cormack, Clarke and Buettcher 2009: low ranks count little, and no single first rank decides


@dataclass(frozen=True)
class Hit:
    """A search result. score: the sort key: the cosine of vectors, BM25 of words, or the sum of reciprocal
    ranks of both. Ranks begin at 1; None where a way did not find the text or was not used."""

    id: str
    text: str
    score: float
    rank_vectors: int | None
    rank_words: int | None
    score_vectors: float | None
    score_words: float | None


def joined(vectors: Sequence[Found], words: Sequence[Found]) -> list[Found]:
    """Reciprocal rank fusion: all rows of both by the sum of 1 / (60 + rank); ties by row."""
    scores: dict[int, float] = {}
    for found in (vectors, words):
        for rank, (row, _) in enumerate(found, 1):
            scores[row] = scores.get(row, 0.0) + 1 / (_CONSTANT + rank)
    return sorted(scores.items(), key=lambda one: (-one[1], one[0]))
