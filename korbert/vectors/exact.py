"""The nearest of many vectors, by computing the product with all of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from korbert.vectors.ranking import Found

__all__ = ["best_of", "nearest"]

_ROWS_AT_ONCE = 65_536  # times the queries: 16 MB of scores


def nearest(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], removed: Sequence[int], top: int
) -> list[list[Found]]:
    """For each query (Q, D), the `top` rows of vectors (N, D) with the greatest products; equal ones by row.

    removed: rows that are not found.
    """
    gone = np.array(sorted(removed), dtype=np.int64)
    found: list[list[Found]] = [[] for _ in queries]
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        part = queries @ vectors[start : start + _ROWS_AT_ONCE].T  # (Q, n)
        part[:, gone[(gone >= start) & (gone < start + part.shape[1])] - start] = -np.inf
        for number, scores in enumerate(part):
            found[number] = best_of([*found[number], *_best(scores, top, start)], top)
    return found


def _best(scores: NDArray[np.float32], top: int, start: int) -> list[Found]:
    """The best of a part. With all ties of the last one: which of them are taken is decided by row."""
    least = -np.inf if len(scores) <= top else np.partition(scores, -top)[-top]
    rows = np.flatnonzero((scores >= least) & (scores > -np.inf))
    return [(start + int(row), float(scores[row])) for row in rows[np.argsort(-scores[rows], kind="stable")][:top]]


def best_of(found: Sequence[Found], top: int) -> list[Found]:
    """The best of several, equal ones by row."""
    return sorted(found, key=lambda one: (-one[1], one[0]))[:top]
