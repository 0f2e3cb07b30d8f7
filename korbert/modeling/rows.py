"""Flat batches: the pieces of all rows, concatenated, and where each row lies.

Everything but attention works piece by piece, so it runs on the (N, D) vectors of real pieces, without padding.
Attention groups rows of similar length into blocks of (rows, length) slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_BLOCK_COST = {"cpu": 16, "cuda": 16_384}  # slots that attention computes in the time one more block costs


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of similar length that attention processes together.

    rows, length: the block has rows x length slots. lengths: (rows,) int64, pieces of each row, on the device; None:
    all have `length`. numbers: which rows of the batch.
    """

    rows: int
    length: int
    lengths: Tensor | None
    numbers: Sequence[int]


class Rows:
    """Where the rows of a flat batch lie.

    lengths: pieces of each of the R rows, N in total. positions: (N,) int64, the position of each piece in its row;
    None: counted from the start of the row.
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
        """(R + 1,) int32: the offset of each row, and N."""
        return self._on_device(np.concatenate([[0], self._ends]).astype(np.int32))

    @cached_property
    def first(self) -> Tensor:
        """(R,) int64: the offset of each row's first piece."""
        return self.starts[:-1].long()

    @cached_property
    def positions(self) -> Tensor:
        """(N,) int64: the position of each piece in its row."""
        return torch.arange(self.pieces, device=self.device) - self.of_pieces(self.first)

    def of_pieces(self, values: Tensor) -> Tensor:
        """Repeats row values for all pieces of a row: (R, ...) -> (N, ...). Does not synchronize with the device."""
        return values.repeat_interleave(self.starts.diff(), dim=0, output_size=self.pieces)

    @cached_property
    def slots(self) -> Tensor | None:
        """(N,) int64: the slot of each piece among all blocks; None: in the order of the flat batch."""
        order = [row for block in self.blocks for row in block.numbers]
        if all(block.lengths is None for block in self.blocks) and order == sorted(order):
            return None
        slots = np.zeros(self.pieces, dtype=np.int64)
        base = 0
        for block in self.blocks:
            for row in block.numbers:
                length = self.lengths[row]
                slots[self._ends[row] - length : self._ends[row]] = np.arange(base, base + length)
                base += block.length
        return self._on_device(slots)

    @property
    def num_slots(self) -> int:
        """Places of all blocks, padding included."""
        return sum(block.rows * block.length for block in self.blocks)

    @cached_property
    def blocks(self) -> list[Block]:
        """The rows in blocks, shortest first. Empty rows are in none."""
        lengths = np.array(self.lengths, dtype=np.int64)
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        # Cut the rows, sorted by length, wherever a separate block saves more slots than it costs.
        block_cost = _BLOCK_COST["cpu" if self.device.type == "cpu" else "cuda"]
        cuts = [0]
        for number in range(1, len(order)):
            if (lengths[order[number]] - lengths[order[number - 1]]) * (number - cuts[-1]) > block_cost:
                cuts.append(number)
        blocks = []
        for rows in np.split(order, cuts[1:]) if len(order) else ():
            row_lengths = lengths[rows]
            longest = int(row_lengths[-1])
            padded = None if row_lengths[0] == longest else self._on_device(row_lengths)
            blocks.append(Block(len(rows), longest, padded, rows.tolist()))
        return blocks

    def _on_device(self, values: NDArray[np.int64] | NDArray[np.int32]) -> Tensor:
        return torch.from_numpy(values).to(self.device, non_blocking=True)
