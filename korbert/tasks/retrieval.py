"""Retrieval over labelled pairs: ranks of right passages among those of all rows; BM25 over morphemes as a baseline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.files import TaskRow

_SCORES_AT_ONCE = 1 << 25  # 256 MB
_K1 = 1.2  # of BM25: Robertson and Zaragoza 2009, 3.2
_B = 0.75

METRICS: Mapping[str, Callable[[NDArray[np.int64]], float]] = {
    "mrr": lambda ranks: float((1 / ranks).mean()),  # mean reciprocal rank, Voorhees 1999
    "recall@1": lambda ranks: float((ranks <= 1).mean()),
    "recall@10": lambda ranks: float((ranks <= 10).mean()),
    "recall@100": lambda ranks: float((ranks <= 100).mean()),
}
"""Functions of the ranks of right passages, (N,), from 1."""


def bm25(texts: Sequence[Sequence[str]], queries: Sequence[Sequence[str]]) -> Callable[[slice], NDArray[np.float64]]:
    """Returns a function: slice of the queries -> their BM25 scores of all texts, (n, M), with Lucene's idf.

    texts, queries: the morphemes of each.
    """
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer  # takes a second to import; models do not need it

    counter = CountVectorizer(analyzer=lambda morphemes: morphemes, dtype=np.float64)
    counts: Any = counter.fit_transform(texts)
    document_frequencies = counts.getnnz(axis=0)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    saturation = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1))
    weights = counts.copy()
    weights.data /= weights.data + np.repeat(saturation, np.diff(weights.indptr))
    weights = weights @ sparse.diags(np.log1p((len(texts) - document_frequencies + 0.5) / (document_frequencies + 0.5)))
    query_counts = counter.transform(queries)
    return lambda part: np.asarray((query_counts[part] @ weights.T).todense())


def fuse_scores(words: NDArray[np.floating], cosines: NDArray[np.floating], weight: float) -> NDArray[np.float32]:
    """BM25 as a share of the best text's, plus the weighted cosine. words, cosines: (.., M), of M texts."""
    best = np.maximum(words.max(axis=-1, initial=0, keepdims=True), 1e-9)
    return np.asarray(words / best + weight * cosines, np.float32)


def weight_among(terms: float, weight: float) -> float:
    """Scales a cosine weight that was chosen for texts of 100 search terms to texts of `terms` on average.

    The longer a text, the less of it a vector of fixed size holds, and the more its words tell: see "A model for
    search" in benchmarks/RESULTS.md.
    """
    return float(weight * (100 / max(terms, 1)) ** 0.5)


@dataclass(frozen=True)
class Retrieval:
    """N queries and the passages to find them in.

    passages: the distinct passages and negatives of all rows. own: (N,) the passage of each query. fits: query number
    -> all passages that fit the query, if there are several.
    """

    queries: Sequence[str]
    passages: Sequence[str]
    own: NDArray[np.int64]
    fits: Mapping[int, NDArray[np.int64]]

    @classmethod
    def of(cls, rows: Sequence[TaskRow]) -> Self:
        """Rows with `text` and `pair`, and `negatives` if they have some."""
        texts = (text for row in rows for text in (row["pair"], *(row.get("negatives") or ())))
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        fitting: dict[str, set[int]] = {}
        for row in rows:
            fitting.setdefault(row["text"], set()).add(numbers[row["pair"]])
        queries = [row["text"] for row in rows]
        several = {query: np.array(sorted(passages)) for query, passages in fitting.items() if len(passages) > 1}
        fits = {number: several[query] for number, query in enumerate(queries) if query in several}
        return cls(queries, list(numbers), np.array([numbers[row["pair"]] for row in rows], np.int64), fits)

    def by_words(self, morphemes: Mapping[str, Sequence[str]]) -> Callable[[slice], NDArray[np.float64]]:
        """The `bm25` of the passages. morphemes: of every text."""
        return bm25([morphemes[text] for text in self.passages], [morphemes[text] for text in self.queries])

    def ranks(self, scores: Callable[[slice], NDArray[np.floating]]) -> NDArray[np.int64]:
        """(N,) ranks, from 1, of each query's own passage among passages that do not fit the query; the last of a tie.

        scores: a slice of the queries -> their scores of all passages, (n, M), higher is better.
        """
        ranks = []
        at_once = max(1, _SCORES_AT_ONCE // len(self.passages))
        for start in range(0, len(self.queries), at_once):
            part = slice(start, start + at_once)
            passage_scores = scores(part)
            own_scores = passage_scores[np.arange(len(passage_scores)), self.own[part]][:, None]
            part_ranks = (passage_scores >= own_scores).sum(axis=1)
            for row in range(len(passage_scores)):
                if (fits := self.fits.get(start + row)) is not None:
                    part_ranks[row] -= (passage_scores[row, fits] >= own_scores[row]).sum() - 1
            ranks.append(part_ranks)
        return np.concatenate(ranks)
