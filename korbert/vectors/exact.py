"""Exact nearest neighbours, by dot product with every vector."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from korbert.vectors.ranking import Found

__all__ = ["best_of", "nearest"]

_ROWS_AT_ONCE = 65_536  # with 64 queries, 16 MB of scores


def nearest(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], removed: Sequence[int], top: int
) -> list[list[Found]]:
    """For each query (Q, D), the `top` rows of vectors (N, D) with the largest dot products; ties by row.

    removed: rows to leave out.
    """
    gone = np.array(sorted(removed), dtype=np.int64)
    found: list[list[Found]] = [[] for _ in queries]
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        part = queries @ vectors[start : start + _ROWS_AT_ONCE].T  # (Q, n)
        part[:, gone[(gone >= start) & (gone < start + part.shape[1])] - start] = -np.inf
        for number, scores in enumerate(part):
            # A partition alone would choose among ties at random.
            least = -np.inf if len(scores) <= top else np.partition(scores, -top)[-top]
            rows = np.flatnonzero((scores >= least) & (scores > -np.inf))
            rows = rows[np.argsort(-scores[rows], kind="stable")][:top]
            best = ((start + int(row), float(scores[row])) for row in rows)
            found[number] = best_of([*found[number], *best], top)
    return found


def best_of(found: Sequence[Found], top: int) -> list[Found]:
    """The `top` best; ties by row."""
    return sorted(found, key=lambda one: (-one[1], one[0]))[:top]
