"""Results of a search, and what joins both rankings: weights and shared letters (the sum is tasks/retrieval.py)."""

from dataclasses import dataclass, field
from typing import Any

Ranking = list[tuple[int, float]]
"""Numbers of texts and their scores, best first."""

USUAL_WEIGHT = 2.0
"""Of cosines beside BM25, for models whose validation chose none.

Vectors that tell texts apart badly have cosines that differ little, and so leave the order of the words nearly as it
is. The weight was chosen on half of the queries of four sets; on the others, recall at 1 is 0.2 points below words
alone at most, and 1 above at most, with vectors that were not trained for search. Reciprocal rank fusion, which counts
each way alike, loses up to 35 points: see "Search" in benchmarks/RESULTS.md.
"""


LETTERS_WEIGHT = 0.3
"""Of shared_letters beside BM25, among texts of 100 terms (see korbert.tasks.retrieval.weight_among)."""

SHORT_TERMS = 100
"""Texts with fewer terms on average are reordered by shared letters: longer ones share some with every query."""

_LETTERS_AT_MOST = 2_000


def shared_letters(query: str, text: str) -> float:
    """Dice's coefficient (1945) of the pairs of letters of two texts without their spaces, from 0 to 1.

    Endings, misspelt words and words with other spaces, which are no common terms, count here.
    """
    first, second = _pairs(query), _pairs(text)
    return 2 * len(first & second) / max(len(first) + len(second), 1)


def _pairs(text: str) -> set[str]:
    letters = "".join(text[:_LETTERS_AT_MOST].split())
    return {letters[at : at + 2] for at in range(len(letters) - 1)}


@dataclass(frozen=True)
class Hit:
    """A search result. score: the sort key: BM25 of words, the cosine of vectors, or the fused score of both. Ranks
    begin at 1; None where a way did not find the text or was not used. fields: as they were added."""

    id: str
    text: str
    score: float
    rank_vectors: int | None
    rank_words: int | None
    score_vectors: float | None
    score_words: float | None
    fields: dict[str, Any] = field(default_factory=dict)
