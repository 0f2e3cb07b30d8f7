"""Ranking metrics: one number per query, whose mean over queries is the published score.

scores: (Q, D) float, higher is nearer. relevant: (Q, D) bool. gains: (Q, D), 0 or more. Returns (Q,) float.
A query without a relevant document scores 0, as in trec_eval and scikit-learn's ndcg_score. For recall and MRR, tied
documents all get the last rank of the tie, so that constant scores gain nothing.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Scores = NDArray[np.floating[Any]]


def recall_at(k: int, scores: _Scores, relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(Q,) float: share of the relevant documents of a query whose rank is k or less (Manning et al. 2008, 8.3)."""
    hits = ((_ranks(scores) <= k) & relevant).sum(axis=1)
    return np.asarray(hits / np.maximum(relevant.sum(axis=1), 1))


def reciprocal_rank(scores: _Scores, relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(Q,) float: 1 / rank of the first relevant document; its mean is MRR (Voorhees 1999)."""
    return np.asarray(np.where(relevant, 1.0 / _ranks(scores), 0.0).max(axis=1, initial=0.0))


def ndcg_at(k: int, scores: _Scores, gains: NDArray[np.number[Any]]) -> NDArray[np.float64]:
    """(Q,) float: sum of gain / log2(rank + 1) over the first k ranks, divided by that of the best order.

    Järvelin and Kekäläinen 2002, with linear gains. Documents of equal scores get the mean of their gains, the expected
    value over their orders (McSherry and Najork 2008), as in scikit-learn's ndcg_score(ignore_ties=False).
    """
    discounts = 1.0 / np.log2(np.arange(scores.shape[1]) + 2.0)
    discounts[k:] = 0.0
    best = -np.sort(-gains.astype(np.float64), axis=1) @ discounts  # (Q,)
    reached = np.zeros(len(scores))
    for query, (row, gain) in enumerate(zip(scores, gains, strict=True)):
        _, group, sizes = np.unique(-row, return_inverse=True, return_counts=True)
        ends = np.cumsum(sizes)
        shared = np.diff(np.append(0.0, np.cumsum(discounts)[ends - 1])) / sizes  # mean discount of a group's ranks
        reached[query] = gain @ shared[group]
    return np.asarray(np.divide(reached, best, out=np.zeros(len(scores)), where=best > 0))


def _ranks(scores: _Scores) -> NDArray[np.int64]:
    """(Q, D) int: number of documents of the query that score as high or higher, itself included."""
    ordered = np.sort(scores, axis=1)
    below = [np.searchsorted(row, values, side="left") for row, values in zip(ordered, scores, strict=True)]
    return np.asarray(scores.shape[1] - np.array(below, dtype=np.int64).reshape(scores.shape))
