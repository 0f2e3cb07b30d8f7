"""Pads rows of different lengths to one batch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def padded(rows: Sequence[Mapping[str, NDArray[Any]]], fillers: Mapping[str, int]) -> dict[str, Any]:
    """attention_mask and the columns named in `fillers`, (B, T) each, T the longest row; and facts about them.

    lengths: the pieces of each row, a tuple of B; pieces: their sum.

    rows: a one-dimensional array per column, input_ids included; those in `fillers` have equal lengths within a row.
    fillers: padding value per column. A number makes an int64 tensor, False a bool one.
    """
    lengths = np.array([len(row["input_ids"]) for row in rows])
    present = np.arange(lengths.max()) < lengths[:, None]  # (B, T)
    batch: dict[str, Any] = {
        "attention_mask": torch.from_numpy(present.astype(np.int64)),
        "lengths": tuple(lengths.tolist()),
        "pieces": int(lengths.sum()),
    }
    for name, filler in fillers.items():
        column = np.full(present.shape, filler, dtype=type(filler))
        column[present] = np.concatenate([row[name] for row in rows])
        batch[name] = torch.from_numpy(column)
    return batch
