"""Approximate nearest neighbours for very many vectors, by an HNSW graph (usearch); close to exact search."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.vectors.ranking import Found

__all__ = ["MANY_ROWS", "build_graph", "has_usearch", "nearest_in_graph", "open_graph"]

MANY_ROWS = 1_000_000  # rows of an index above which its large parts get a graph
_ROWS_AT_ONCE = 10_000


def has_usearch() -> bool:
    """Whether the package is installed: korbert[search]."""
    return importlib.util.find_spec("usearch") is not None


def build_graph(vectors: NDArray[np.float32], path: Path) -> None:
    """Writes the graph of vectors (N, D); keys are rows."""
    from usearch.index import Index

    graph: Any = Index(ndim=vectors.shape[1], metric="ip", dtype="f32")
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        part = np.ascontiguousarray(vectors[start : start + _ROWS_AT_ONCE])
        graph.add(np.arange(start, start + len(part), dtype=np.uint64), part)
    graph.save(str(path))


def open_graph(path: Path) -> Any:
    """The graph in a file, memory-mapped."""
    from usearch.index import Index

    return Index.restore(str(path), view=True)


def nearest_in_graph(
    graph: Any, vectors: NDArray[np.float32], queries: NDArray[np.float32], removed: Sequence[int], top: int
) -> list[list[Found]]:
    """As exact.nearest, but a few of the nearest may be missing. Scores are computed from the vectors."""
    gone, found = frozenset(removed), []
    for query in queries:
        count, rows = 2 * top, np.zeros(0, np.int64)
        while len(rows) < min(top, len(vectors) - len(gone)):
            keys = graph.search(query, min(count, len(vectors))).keys.astype(np.int64)
            rows = np.array([row for row in keys.tolist() if row not in gone], dtype=np.int64)
            if count >= len(vectors):
                break
            count *= 2
        scores = vectors[rows] @ query
        order = np.lexsort((rows, -scores))[:top]
        found.append([(int(rows[place]), float(scores[place])) for place in order])
    return found
