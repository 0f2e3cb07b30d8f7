"""The vectors of an index in memory, for exact search."""

import sqlite3
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from korbert.search.database import read_meta

_ROWS_AT_ONCE = 4_096


@dataclass(frozen=True)
class Vectors:
    """The vectors of all texts at one version of the index. numbers: (N,) int64, rising; rows: (N, D) float32."""

    version: int
    numbers: NDArray[np.int64]
    rows: NDArray[np.float32]


class VectorCache:
    """Keeps the vectors that it has read; after a change of the index it reads only what is new."""

    def __init__(self, size: int) -> None:
        self._kept = Vectors(-1, np.zeros(0, np.int64), np.zeros((0, size), np.float32))
        self._lock = Lock()

    def read(self, database: sqlite3.Connection) -> Vectors:
        """The vectors of the texts in the database."""
        with self._lock:
            kept, version = self._kept, read_meta(database, "version")
            if kept.version == version:
                return kept
            # All numbers are in the small index of ids, too.
            numbers = np.array([number for (number,) in database.execute("SELECT number FROM texts")], np.int64)
            numbers.sort()
            is_known = np.isin(numbers, kept.numbers, assume_unique=True)
            rows = np.empty((len(numbers), kept.rows.shape[1]), np.float32)
            rows[is_known] = kept.rows[np.searchsorted(kept.numbers, numbers[is_known])]
            if len(new := np.flatnonzero(~is_known)):
                between = "SELECT vector FROM vectors WHERE number BETWEEN ? AND ? ORDER BY number"
                read = database.execute(between, (int(numbers[new[0]]), int(numbers[new[-1]])))
                row = int(new[0])
                while blobs := read.fetchmany(_ROWS_AT_ONCE):
                    part = np.frombuffer(b"".join(blob for (blob,) in blobs), np.float32)
                    rows[row : row + len(blobs)] = part.reshape(len(blobs), -1)
                    row += len(blobs)
            self._kept = Vectors(version, numbers, rows)
            return self._kept


def best(numbers: NDArray[np.int64], scores: NDArray[np.float32], top: int) -> list[tuple[int, float]]:
    """The `top` numbers (N,) with the largest scores (N,), and these scores; ties by number, which must rise."""
    # A partition alone would choose among ties at random.
    least = -np.inf if len(scores) <= top else np.partition(scores, -top)[-top]
    rows = np.flatnonzero(scores >= least)
    rows = rows[np.argsort(-scores[rows], kind="stable")][:top]
    return list(zip(numbers[rows].tolist(), scores[rows].tolist(), strict=True))
