"""Exact search by vectors: their 8-bit codes are in memory, and those that may be the best are read from the index.

A query among many vectors takes the time to read them, and codes are a quarter of float32. A code tells the cosine up
to a known error, so whole vectors are read only for the texts that this error leaves in question: some hundreds of
a million vectors of 256 numbers. What is coded is the difference from a mean, as the vectors of many models lie close
together.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.messages import Message
from korbert.modeling import int8_products
from korbert.search.database import Damage, checked_row, read_meta
from korbert.search.hits import Ranking
from korbert.search.owners import Owners

_ROWS_AT_ONCE = 4_096
_SAMPLE = 1_000  # vectors whose mean is subtracted
_BLOCK = 32  # numbers that torch's kernel of 8-bit products reads at a time: it would read past the end of shorter rows
_ROUNDING = 2.0**-8  # of bfloat16, relative


@dataclass(frozen=True)
class VectorCodes:
    """Codes of the vectors of all passages at one version of the index. A vector is mean + code x scale, or nearly.

    identity: of the index, which another one in its place does not have.
    numbers: (N,) int64, rising. mean: (D,). codes: (N, D rounded up to 32) int8. scales: (N,) bfloat16. products: (N,)
    float32, of vector and mean. error: the largest distance of a vector from what its code says. length: the largest
    distance from the mean. sample: (up to 1,000, D) float32, whole vectors at equal distances.
    """

    identity: str
    version: int
    numbers: NDArray[np.int64]
    mean: Tensor
    codes: Tensor
    scales: Tensor
    products: Tensor
    error: float
    length: float
    sample: NDArray[np.float32]

    def query(self, vector: NDArray[np.float32]) -> "QueryCosines":
        """The cosines of a query and all passages. vector: (D,), of length 1."""
        if not len(self.numbers):
            return QueryCosines(vector, np.zeros(1, np.float32), 0.0, 0.0)
        query = torch.zeros(1, self.codes.shape[1])
        query[0, : len(vector)] = torch.from_numpy(vector) - self.mean
        rounded = query.bfloat16()
        centred = int8_products(rounded, self.codes, self.scales)[0]  # (N,) bfloat16
        # What a cosine may be off by, at most: the error of its code, of the rounded query, of the rounded sum.
        error = self.error * float(rounded.norm()) + self.length * float((query - rounded).norm())
        error += _ROUNDING * float(centred.abs().max()) + 1e-5
        estimates = np.zeros(self.numbers[-1] + 1, np.float32)
        estimates[self.numbers] = (self.products + centred).numpy()
        deviation = float((self.sample @ vector).std())
        return QueryCosines(vector, estimates, error, deviation)


@dataclass(frozen=True)
class QueryCosines:
    """The cosines of a query and all passages.

    vector: (D,), of the query. estimates: (1 + largest number,), the cosine of each passage, less a constant that is
    the same for all passages, up to `error`. deviation: the standard deviation of the cosines, from a sample.
    """

    vector: NDArray[np.float32]
    estimates: NDArray[np.float32]
    error: float
    deviation: float

    def best(
        self,
        database: sqlite3.Connection,
        owners: Owners,
        numbers: NDArray[np.int64],
        top: int,
        score: Callable[[NDArray[np.float32]], NDArray[np.float32]] = lambda cosines: cosines,
        slope: float = 1.0,
    ) -> Ranking:
        """Returns the best passage, with its score, of each of the `top` texts with the best passages; ties by number.

        numbers: of passages, rising. score: takes the cosines of these passages, (N,), and returns their scores, (N,):
        `slope` times the cosine plus a term that does not depend on it.
        """
        estimates = self.estimates[numbers]
        rows = np.arange(len(numbers))
        _, best_scores = owners.best(numbers, score(estimates))
        if len(best_scores) > top:
            threshold = np.partition(best_scores, -top)[-top] - 2 * slope * self.error - 1e-6
            rows = np.flatnonzero(score(estimates) >= threshold)
        estimates[rows] = cosines(database, numbers[rows], self.vector)
        return select_best(*owners.best(numbers[rows], score(estimates)[rows]), top)


class VectorCache:
    """Keeps the codes of the vectors that it has read; after a change of the index it reads only what is new."""

    def __init__(self, size: int) -> None:
        self._kept = _without_texts(torch.zeros(size))
        self._lock = Lock()

    def read(self, database: sqlite3.Connection) -> VectorCodes:
        """The vectors of the passages in the database."""
        with self._lock:
            kept = self._kept
            identity = read_meta(database, "identity")
            version = read_meta(database, "version")
            if (kept.identity, kept.version) == (identity, version):
                return kept
            if kept.identity != identity or kept.version > version:  # another index, or an earlier copy of this one
                kept = _without_texts(torch.zeros_like(kept.mean))
            # All numbers are in the small index of texts, too.
            numbers = np.array([number for (number,) in database.execute("SELECT number FROM passages")], np.int64)
            numbers.sort()
            if len(numbers) != read_meta(database, "passages"):
                raise Damage(Message("passages are missing"))
            step = len(numbers) // _SAMPLE + 1
            sample = np.concatenate([kept.sample[:0], *_read(database, numbers[::step])])
            if len(numbers) > 2 * len(kept.numbers):  # the mean has changed, too
                kept = _without_texts(torch.from_numpy(sample.mean(axis=0)))
            is_kept = np.isin(numbers, kept.numbers, assume_unique=True)
            kept_rows = torch.from_numpy(np.searchsorted(kept.numbers, numbers[is_kept]))
            codes, scales, products = (
                torch.zeros((len(numbers), *array.shape[1:]), dtype=array.dtype)
                for array in (kept.codes, kept.scales, kept.products)
            )
            for array, kept_array in ((codes, kept.codes), (scales, kept.scales), (products, kept.products)):
                array[is_kept] = kept_array[kept_rows]
            error = kept.error
            length = kept.length
            if len(new_rows := np.flatnonzero(~is_kept)):
                row = int(new_rows[0])
                select = "SELECT * FROM vectors WHERE number BETWEEN ? AND ? ORDER BY number"
                cursor = database.execute(select, (int(numbers[new_rows[0]]), int(numbers[new_rows[-1]])))
                for part in _parts(cursor, numbers[new_rows]):
                    rows = slice(row, row + len(part))
                    products[rows] = torch.from_numpy(part) @ kept.mean
                    centred = torch.from_numpy(part) - kept.mean
                    scales[rows] = centred.abs().amax(1).clamp(min=1e-30) / 127
                    scale = scales[rows, None].float()
                    rounded = (centred / scale).round().clamp(-127, 127)
                    codes[rows, : part.shape[1]] = rounded.to(torch.int8)
                    error = max(error, float((centred - rounded * scale).norm(dim=1).max()))
                    length = max(length, float(centred.norm(dim=1).max()))
                    row = rows.stop
            self._kept = VectorCodes(
                identity, version, numbers, kept.mean, codes, scales, products, error, length, sample
            )
            return self._kept


def _without_texts(mean: Tensor) -> VectorCodes:
    codes = torch.zeros((0, -(-len(mean) // _BLOCK) * _BLOCK), dtype=torch.int8)
    sample = np.zeros((0, len(mean)), np.float32)
    scales = torch.zeros(0, dtype=torch.bfloat16)
    return VectorCodes("", -1, np.zeros(0, np.int64), mean, codes, scales, torch.zeros(0), 0.0, 0.0, sample)


def cosines(
    database: sqlite3.Connection, numbers: NDArray[np.int64], vector: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The exact cosines, (N,), of the passages with these rising numbers."""
    query = vector.astype(np.float64)  # sums are rounded at the end, so that equal vectors have equal cosines
    parts = [part @ query for part in _read(database, numbers)]
    return np.concatenate([np.zeros(0), *parts]).astype(np.float32)


def _read(database: sqlite3.Connection, numbers: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
    """The vectors of the passages with these rising numbers, some thousand at a time."""
    select = "SELECT * FROM vectors WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number"
    return _parts(database.execute(select, (json.dumps(numbers.tolist()),)), numbers)


def _parts(cursor: sqlite3.Cursor, numbers: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
    """Yields the vectors of these rows, some thousand at a time. Damage if they are not the rows of `numbers`."""
    num_read = 0
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        vectors = [checked_row(f"vector {row[0]}", *row) for row in rows]
        if [number for number, _ in vectors] != numbers[num_read : num_read + len(rows)].tolist():
            break
        num_read += len(rows)
        # From a bytearray, as torch wants memory that may be written.
        yield np.frombuffer(bytearray().join(blob for _, blob in vectors), np.float32).reshape(len(rows), -1)
    if num_read < len(numbers):
        raise Damage(Message("vector {number} is missing", number=numbers[num_read]))


def select_best(numbers: NDArray[np.int64], scores: NDArray[np.float32], top: int) -> Ranking:
    """The `top` numbers (N,) with the largest scores (N,), and these scores; ties by number, which must rise."""
    # A partition alone would choose among ties at random.
    least = -np.inf if len(scores) <= top else np.partition(scores, -top)[-top]
    rows = np.flatnonzero(scores >= least)
    rows = rows[np.argsort(-scores[rows], kind="stable")][:top]
    return list(zip(numbers[rows].tolist(), scores[rows].tolist(), strict=True))
