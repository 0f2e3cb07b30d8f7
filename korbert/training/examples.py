"""Labelled rows of pieces, flat in memory, as padded batches, and their order in training."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from korbert.system import current_world
from korbert.training.devices import Batch

_POOL_BATCHES = 64  # batches sorted by length together: enough for little padding, few enough to stay shuffled
_POOL_STREAM = 0x706F6F6C  # separates these draws from others keyed by (seed, epoch)


@dataclass(frozen=True)
class Examples:
    """N rows of pieces with special tokens; row i is `[offsets[i] : offsets[i + 1]]` of the flat arrays.

    input_ids: int32. boundaries: uint8, one level per piece. offsets: (N + 1,) int64. labels: (N, ...), the targets:
    int64 label ids, float32 scores, or one number per label. seconds: (N,) int64, the position in each row where the
    second text begins; None for single texts. cut: number of rows whose texts were truncated.
    """

    input_ids: NDArray[np.int32]
    boundaries: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    labels: NDArray[Any]
    pad_id: int
    seconds: NDArray[np.int64] | None = None
    cut: int = 0

    @classmethod
    def of_rows(
        cls,
        rows: Iterable[tuple[ArrayLike, ArrayLike]],
        labels: ArrayLike,
        pad_id: int,
        seconds: NDArray[np.int64] | None = None,
    ) -> Self:
        """Builds examples from (input_ids, boundaries) and the label of each row."""
        ids = [np.empty(0, np.int32)]
        levels = [np.empty(0, np.uint8)]
        for row_ids, row_levels in rows:
            ids.append(np.asarray(row_ids, dtype=np.int32))
            levels.append(np.asarray(row_levels, dtype=np.uint8))
        offsets = np.cumsum([len(row) for row in ids], dtype=np.int64)
        targets = labels if isinstance(labels, np.ndarray) else np.asarray(labels, np.int64)
        return cls(np.concatenate(ids), np.concatenate(levels), offsets, targets, pad_id, seconds)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) pieces per row, special tokens included."""
        return np.diff(self.offsets)

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        """A batch padded to the longest row: input_ids, attention_mask, boundaries (B, T) int64; labels (B, ...).

        Pairs also have token_type_ids (B, T). lengths: pieces of each row, on CPU.
        """
        batch = self.pad_rows(rows, {"input_ids": self.pad_id, "boundaries": 0})
        if self.seconds is not None:
            in_second = torch.arange(batch["input_ids"].shape[1]) >= torch.from_numpy(self.seconds[rows])[:, None]
            batch["token_type_ids"] = in_second.long() * batch["attention_mask"]
        return {**batch, "labels": torch.from_numpy(self.labels[rows])}

    def pad_rows(self, rows: NDArray[np.int64], fillers: Mapping[str, int]) -> dict[str, Any]:
        """attention_mask and the arrays named in `fillers` of some rows, (B, T) int64; and facts about them.

        lengths: the pieces of each row, a tuple of B; pieces: their sum. fillers: array -> its value at padding.
        """
        lengths = self.lengths[rows]
        present = np.arange(lengths.max()) < lengths[:, None]  # (B, T)
        batch: dict[str, Any] = {
            "attention_mask": torch.from_numpy(present.astype(np.int64)),
            "lengths": tuple(lengths.tolist()),
            "pieces": int(lengths.sum()),
        }
        for name, filler in fillers.items():
            column = np.full(present.shape, filler, dtype=np.int64)
            flat = getattr(self, name)
            column[present] = np.concatenate([flat[slice(*self.offsets[row : row + 2])] for row in rows])
            batch[name] = torch.from_numpy(column)
        return batch

    def order(self, batch_size: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
        """The row numbers of the batches of an epoch: every row once, in ceil(N / batch_size) batches."""
        return bucket_by_length(self.lengths, batch_size, generator)

    def pad_columns(self, flat: NDArray[np.floating[Any]], rows: NDArray[np.int64]) -> torch.Tensor:
        """Numbers of all pieces, (P, C), as those of some rows, (B, T, C) float32; zeros at padding."""
        lengths = self.lengths[rows]
        padded = np.zeros((len(rows), lengths.max(), flat.shape[1]), np.float32)
        padded[np.arange(lengths.max()) < lengths[:, None]] = flat[positions_of(self.offsets, rows)]
        return torch.from_numpy(padded)


def positions_of(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the entries of some rows in a flat array, row by row. offsets: as in Examples."""
    return np.concatenate([np.empty(0, np.int64), *(np.arange(*offsets[row : row + 2]) for row in rows)])


def by_length(lengths: NDArray[np.int64], batch_size: int) -> Iterator[NDArray[np.int64]]:
    """Batches of all row numbers, shortest rows first, to minimize padding in inference."""
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def bucket_by_length(
    lengths: NDArray[np.int64], batch_size: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Random batches of row numbers, covering all rows once, each of rows of similar length.

    Rows are shuffled, cut into pools of 64 batches, sorted by length within each pool, and cut into batches, which are
    shuffled. There are ceil(N / batch_size) batches; one may be smaller.
    """
    order = generator.permutation(len(lengths))
    batches: list[NDArray[np.int64]] = []
    for start in range(0, len(order), _POOL_BATCHES * batch_size):
        pool = order[start : start + _POOL_BATCHES * batch_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
    return [batches[number] for number in generator.permutation(len(batches))]


class Batches:
    """The batch of each step, a pure function of the step. Each epoch has its own order.

    With several connected processes, each makes its own share. steps_per_epoch: steps per pass over all rows.
    """

    def __init__(self, examples: Examples, batch_size: int, seed: int) -> None:
        self._examples = examples
        self._here = current_world()  # read here: a data worker that makes batches is not connected

        @lru_cache(maxsize=2)
        def order(epoch: int) -> list[NDArray[np.int64]]:
            return examples.order(batch_size, np.random.default_rng([_POOL_STREAM, seed, epoch]))

        self._order = order
        self.steps_per_epoch = -(-len(examples) // batch_size)

    def __call__(self, step: int) -> list[Batch]:
        """One micro-batch for `step` (from 0), with the keys of Examples.batch.

        With several processes there is also `weight`, the share of rows of the process; one without rows gets weight 0.
        """
        epoch, position = divmod(step, self.steps_per_epoch)
        rows = self._order(epoch)[position]
        if self._here.size == 1:
            return [self._examples.batch(rows)]
        local_rows = rows[self._here.share]
        weight = torch.tensor(len(local_rows) / len(rows))
        if not len(local_rows):
            local_rows = rows[:1]
        return [{**self._examples.batch(local_rows), "weight": weight}]
