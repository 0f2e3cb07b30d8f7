"""Results of a search, the weights of vectors and of shared letters, and the score of shared letters."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from korbert.system import JsonObject

Ranking = list[tuple[int, float]]  # numbers of texts and their scores, best first

# Weight of cosines, added to BM25, for models whose validation chose none. Vectors that tell texts apart badly have
# cosines that differ little, and so leave the order of the words nearly as it is. The weight was chosen on half of the
# queries of four sets; on the others, recall at 1 is 0.2 points below words alone at most, and 1 above at most, with
# vectors that were not trained for search. Reciprocal rank fusion, which counts each way alike, loses up to 35 points:
# see "Search" in benchmarks/RESULTS.md.
USUAL_WEIGHT = 2.0
# Weight of shared_letters, for texts of 100 terms (korbert.tasks.retrieval.weight_among).
LETTERS_WEIGHT = 0.3
# Shared letters count in indexes whose texts have fewer terms on average; longer texts share some with any query.
SHORT_TERMS = 100

_LETTERS_AT_MOST = 2_000


def shared_letters(query: str, texts: Iterable[str]) -> list[float]:
    """Dice's coefficient (1945) of the letter pairs of the query and of each text, spaces left out: 0 to 1.

    Counts what terms miss: endings, misspelt words, and words with other spacing.
    """
    asked = _letter_pairs(query)
    return [2 * len(asked & own) / max(len(asked) + len(own), 1) for own in map(_letter_pairs, texts)]


def _letter_pairs(text: str) -> set[str]:
    letters = "".join(text[:_LETTERS_AT_MOST].split())
    return {letters[at : at + 2] for at in range(len(letters) - 1)}


@dataclass(frozen=True)
class Hit:
    """A search result. score: the sort key: BM25 of words, the cosine of vectors, the fused score of both; with a
    reranker, of the first 50 hits that of `rerank_hits`. Ranks begin at 1; None where a way did not find the text or
    was not used. fields: as they were added."""

    id: str
    text: str
    score: float
    rank_vectors: int | None
    rank_words: int | None
    score_vectors: float | None
    score_words: float | None
    fields: JsonObject = field(default_factory=dict)
