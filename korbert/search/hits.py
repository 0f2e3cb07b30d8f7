"""Results of a search, the weights of vectors and of shared letters, and the score of shared letters."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from korbert.system import JsonObject

Ranking = list[tuple[int, float]]  # numbers of passages, one of a text, and their scores, best first

# Weight of cosines, added to BM25, for models whose validation chose none. Vectors that tell texts apart badly have
# cosines that differ little, and so leave the order of the words nearly as it is. The weight was chosen on half of the
# queries of four sets; on the others, recall at 1 is 0.2 points below words alone at most, and 1 above at most, with
# vectors that were not trained for search. Reciprocal rank fusion, which counts each way alike, loses up to 35 points:
# see "Search" in benchmarks/RESULTS.md.
USUAL_WEIGHT = 2.0
# The best of n cosines rises with n by itself: that many standard deviations of the query's cosines x ln n. Without
# this, recall at 1 of court decisions by vectors is 5 points lower.
CHANCE = 0.3
# Weight of shared_letters, for texts of 100 terms (korbert.tasks.retrieval.weight_among).
LETTERS_WEIGHT = 0.3
# With so many terms in a passage on average, or more, letters_found takes the place of shared_letters.
LONG_TERMS = 50
FOUND_WEIGHT = 0.75

_LETTERS_AT_MOST = 2_000


def shared_letters(query: str, texts: Iterable[str]) -> list[float]:
    """Dice's coefficient (1945) of the letter pairs of the query and of each text, spaces left out: 0 to 1.

    Counts what terms miss: endings, misspelt words, and words with other spacing.
    """
    query_pairs = _letter_pairs(query)
    return [
        2 * len(query_pairs & text_pairs) / max(len(query_pairs) + len(text_pairs), 1)
        for text_pairs in map(_letter_pairs, texts)
    ]


def letters_found(query: str, texts: Iterable[str]) -> list[float]:
    """The share of the letter pairs of the query that are in each text, spaces left out: 0 to 1."""
    query_pairs = _letter_pairs(query)
    return [len(query_pairs & text_pairs) / max(len(query_pairs), 1) for text_pairs in map(_letter_pairs, texts)]


def _letter_pairs(text: str) -> set[str]:
    letters = "".join(text[:_LETTERS_AT_MOST].split())
    return {letters[start : start + 2] for start in range(len(letters) - 1)}


@dataclass(frozen=True)
class Hit:
    """A search result: a text, and the passage of it that answers best.

    begin, end: the passage is these characters of the text, all of a text that the model reads at once. score: the sort
    key: BM25 of words, the cosine of vectors (of several passages, less what the best of so many has by chance), the
    fused score of both and, of the first 50 hits, what their letters share with the query; with a reranker, of the
    first 50 hits that of `rerank_hits`. Ranks begin at 1; None where a way did not find the text or was not used.
    fields: as they were added.
    """

    id: str
    text: str
    passage: str
    begin: int
    end: int
    score: float
    rank_vectors: int | None
    rank_words: int | None
    score_vectors: float | None
    score_words: float | None
    fields: JsonObject = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the passage is the whole text."""
        return self.passage == self.text

    def as_json(self) -> JsonObject:
        """Returns the fields of the hit, without `text` if the passage is only a part of it."""
        return {name: value for name, value in vars(self).items() if name != "text" or self.is_whole}
