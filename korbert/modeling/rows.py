"""Flat batches: the pieces of all rows one after the other, and where each row lies among them.

Everything but attention treats a piece alone, so it runs over the (N, D) vectors of real pieces, none of padding.
Attention takes rows of like lengths together, as blocks of (rows, length) places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Block", "Rows"]

_BLOCK_COST = {"cpu": 16, "cuda": 16_384}  # places that attention computes in the time that one more block costs


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of like lengths that attention takes together.

    rows, length: the block has rows x length places. lengths: (rows,) int64, pieces of each row, on the device; None:
    all have `length`.
    """

    rows: int
    length: int
    lengths: Tensor | None


class Rows:
    """Where the rows of a flat batch lie.

    lengths: pieces of each of the R rows; N together. positions: (N,) int64, the place of each piece in its row; None:
    counted from the beginning of the row.
    """

    def __init__(self, lengths: Sequence[int], device: torch.device, positions: Tensor | None = None) -> None:
        self.lengths = tuple(lengths)
        self.device = device
        self._ends = np.cumsum(self.lengths, dtype=np.int64)
        self.pieces = int(self._ends[-1]) if self.lengths else 0
        self.longest = max(self.lengths, default=0)
        if positions is not None:
            self.positions = positions

    @cached_property
    def starts(self) -> Tensor:
        """(R + 1,) int32: where each row begins, and N."""
        return self._there(np.concatenate([[0], self._ends]).astype(np.int32))

    @cached_property
    def first(self) -> Tensor:
        """(R,) int64: the place of each row's first piece."""
        return self.starts[:-1].long()

    @cached_property
    def positions(self) -> Tensor:
        """(N,) int64: the place of each piece in its row."""
        return torch.arange(self.pieces, device=self.device) - self.of_pieces(self.first)

    def of_pieces(self, values: Tensor) -> Tensor:
        """(R, ...) values of rows -> (N, ...): each for all pieces of its row. Waits for nothing on the device."""
        return values.repeat_interleave(self.starts.diff(), dim=0, output_size=self.pieces)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The rows in blocks, shortest first. Rows without pieces are in none."""
        return tuple(block for block, _ in self._blocks)

    @cached_property
    def places(self) -> Tensor | None:
        """(N,) int64: where each piece lies among the places of all blocks; None: in the order of the flat batch."""
        order = [row for _, rows in self._blocks for row in rows]
        if all(block.lengths is None for block in self.blocks) and order == sorted(order):
            return None
        found = np.zeros(self.pieces, dtype=np.int64)
        base = 0
        for block, rows in self._blocks:
            for row in rows:
                length = self.lengths[row]
                found[self._ends[row] - length : self._ends[row]] = np.arange(base, base + length)
                base += block.length
        return self._there(found)

    @property
    def num_places(self) -> int:
        """Places of all blocks, padding included."""
        return sum(block.rows * block.length for block in self.blocks)

    @cached_property
    def _blocks(self) -> list[tuple[Block, list[int]]]:
        lengths = np.array(self.lengths, dtype=np.int64)
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        return [(self._block(lengths[rows]), rows.tolist()) for rows in _alike(lengths, order, self.device.type)]

    def _block(self, lengths: NDArray[np.int64]) -> Block:
        longest = int(lengths[-1])
        return Block(len(lengths), longest, None if lengths[0] == longest else self._there(lengths))

    def _there(self, values: NDArray[np.int64] | NDArray[np.int32]) -> Tensor:
        return torch.from_numpy(values).to(self.device, non_blocking=True)


def _alike(lengths: NDArray[np.int64], order: NDArray[np.intp], device: str) -> Iterator[NDArray[np.intp]]:
    """Rows in ascending order of their lengths, cut where a block of their own saves more places than it costs."""
    worth = _BLOCK_COST["cpu" if device == "cpu" else "cuda"]
    start = 0
    for place in range(1, len(order)):
        if (lengths[order[place]] - lengths[order[place - 1]]) * (place - start) > worth:
            yield order[start:place]
            start = place
    if len(order):
        yield order[start:]
