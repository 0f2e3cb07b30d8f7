"""Rows and batches, made when they are read: nothing lies on disk but the documents, once.

What a row holds depends on (seed, epoch, its number) alone, through a counter-based generator: not on batch size,
accumulation or the number of processes. Any step's batch can be made without those before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.errors import SettingsError
from korbert.pretraining.masking import SpecialIds, choose_positions, hide, units_of
from korbert.pretraining.pairs import Pair, Pairs
from korbert.pretraining.permutation import permuted
from korbert.pretraining.settings import MaskingSettings, PairSettings
from korbert.pretraining.shards import Shards
from korbert.seeds import derived_seed
from korbert.training.devices import Batch
from korbert.training.padding import padded

__all__ = ["Layout", "Phase", "PretrainingRows", "heldout_batches", "in_phases", "located"]

Row = dict[str, NDArray[np.int64]]

_IGNORED = -100  # label: no loss
_FRAME = 3  # [CLS] A [SEP] B [SEP]


@dataclass(frozen=True, slots=True)
class Layout:
    """What is known of a batch before it travels.

    lengths: (B,) pieces of each row. labels_before: (B + 1,) labels for MLM in all rows before; last, in all.
    """

    lengths: tuple[int, ...]
    labels_before: tuple[int, ...]


class PretrainingRows:
    """All rows of an epoch, by number. files: shards; max_length: pieces a row, special tokens included."""

    def __init__(
        self,
        files: Sequence[Path] | Shards,
        ids: SpecialIds,
        max_length: int,
        masking: MaskingSettings,
        pairs: PairSettings,
        seed: int,
    ) -> None:
        if max_length < _FRAME + 2:
            raise SettingsError(f"max_length {max_length}: {_FRAME} of these are special; take at least {_FRAME + 2}")
        self._shards = files if isinstance(files, Shards) else Shards(files)
        self._pairs = Pairs(self._shards, max_length - _FRAME, pairs)
        self._ids, self._masking = ids, masking
        self._key = derived_seed("rows", seed, max_length)

    def __len__(self) -> int:
        """Rows of one epoch."""
        return len(self._pairs)

    def row(self, epoch: int, index: int) -> Row:
        """int64: input_ids, token_type_ids, boundaries, labels (T,), T at most max_length; next_sentence_label (1,)."""
        generator = np.random.Philox(key=[self._key, epoch], counter=[0, 0, 0, index])
        rng = np.random.Generator(generator)
        pair = self._pairs.draw(index, rng)
        ids, boundaries, segments, maskable = self._framed(pair)
        units = units_of(boundaries, maskable, self._masking.unit)
        chosen = np.flatnonzero(maskable)[choose_positions(units, self._masking.rate, rng)]
        labels = np.full_like(ids, _IGNORED)
        labels[chosen] = ids[chosen]
        return {
            "input_ids": hide(ids, chosen, self._masking, self._ids, rng),
            "token_type_ids": segments,
            "boundaries": boundaries.astype(np.int64),
            "labels": labels,
            "next_sentence_label": np.array([pair.label]),
        }

    def _framed(self, pair: Pair) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
        """Ids, boundaries, segment numbers (0, 1), and what is no special token, of [CLS] A [SEP] (B [SEP])."""
        spans = [pair.first] if pair.second is None else [pair.first, pair.second]
        length = 1 + sum(end - start + 1 for start, end in spans)
        ids = np.full(length, self._ids.sep, dtype=np.int64)
        boundaries = np.zeros(length, dtype=np.uint8)
        segments = np.zeros(length, dtype=np.int64)
        maskable = np.zeros(length, dtype=bool)
        ids[0] = self._ids.cls
        at = 1
        for number, (start, end) in enumerate(spans):
            here = slice(at, at + end - start)
            ids[here], boundaries[here] = self._shards.pieces(start, end)
            segments[at:] = number
            maskable[here] = True
            at = here.stop + 1
        return ids, boundaries, segments, maskable

    def batch(self, step: int, batch_size: int, micro_batches: int = 1) -> list[Batch]:
        """The rows of step `step` (0-based): the next batch_size in an endless series of shuffled epochs.

        They are sorted by length, so that the micro-batches hold rows of like lengths. In each are, (B, T) int64 with T
        its longest row, input_ids, attention_mask, token_type_ids, boundaries and labels (-100: no loss); (N,) row and
        column of each label, label_rows and label_columns, row by row; (B,) next_sentence_label; the numbers of labels
        in the whole step, mlm_count and nsp_count, by which `pretraining_loss` divides; and a Layout, layout.
        """
        places = step * batch_size + np.arange(batch_size)
        rows = [self.row(epoch, index) for epoch, index in self._shuffled(places)]
        rows.sort(key=lambda row: len(row["input_ids"]))
        parts = np.array_split(np.arange(batch_size), micro_batches)
        counts = _counts(rows)
        return [{**self._together(rows[part[0] : part[-1] + 1]), **counts} for part in parts if part.size]

    def _together(self, rows: Sequence[Row]) -> dict[str, Any]:
        """One micro-batch."""
        batch = padded(rows, {"input_ids": self._ids.pad, "token_type_ids": 0, "boundaries": 0, "labels": _IGNORED})
        labels = torch.from_numpy(np.concatenate([row["next_sentence_label"] for row in rows]))
        return {**batch, "next_sentence_label": labels, **located(batch["labels"], batch["attention_mask"])}

    def _shuffled(self, places: NDArray[np.int64]) -> list[tuple[int, int]]:
        """(epoch, row) at places of the endless series."""
        epochs, inside = np.divmod(places, len(self))
        found: list[tuple[int, int]] = []
        for epoch in np.unique(epochs).tolist():
            key = derived_seed(self._key, epoch)
            found += [(epoch, index) for index in permuted(inside[epochs == epoch], len(self), key).tolist()]
        return found


def located(labels: Tensor, attention_mask: Tensor) -> dict[str, Any]:
    """label_rows, label_columns and layout of a batch. labels, attention_mask: (B, T) on the processor."""
    chosen = labels != _IGNORED
    label_rows, label_columns = chosen.nonzero(as_tuple=True)
    before = [0, *chosen.sum(dim=1).cumsum(0).tolist()]
    layout = Layout(tuple(attention_mask.sum(dim=1).tolist()), tuple(before))
    return {"label_rows": label_rows, "label_columns": label_columns, "layout": layout}


def _counts(rows: Sequence[Row]) -> dict[str, Tensor]:
    return {
        "weight": torch.tensor(1.0),  # the counts below make each micro-batch a share of the step already
        "mlm_count": torch.tensor(sum(int((row["labels"] != _IGNORED).sum()) for row in rows)),
        "nsp_count": torch.tensor(sum(int((row["next_sentence_label"] != _IGNORED).sum()) for row in rows)),
    }


def heldout_batches(
    files: Sequence[Path] | Shards,
    ids: SpecialIds,
    max_length: int,
    masking: MaskingSettings,
    pairs: PairSettings,
    seed: int,
    *,
    limit_rows: int,
    batch_size: int = 64,
) -> list[Batch]:
    """The same batches at every call: at most limit_rows rows, every chosen piece [MASK]ed.

    With 80/10/10 the pieces that stay would look like learning: a model gains 0.6 nat by copying them (DESIGN 8).
    """
    hiding_all = masking.model_copy(update={"mask_share": 1.0, "random_share": 0.0})
    rows = PretrainingRows(files, ids, max_length, hiding_all, pairs, seed)
    number = min(limit_rows, len(rows))
    return rows.batch(0, number, -(-number // batch_size))


@dataclass(frozen=True, slots=True)
class Phase:
    """Some steps of pretraining with rows of one length."""

    rows: PretrainingRows
    steps: int
    batch_size: int
    micro_batches: int = 1


def in_phases(phases: Sequence[Phase]) -> Callable[[int], list[Batch]]:
    """One phase after the other, as `fit` wants its batches: each phase counts its own steps from 0."""
    ends = np.cumsum([phase.steps for phase in phases])

    def batches(step: int) -> list[Batch]:
        number = int(np.searchsorted(ends, step, side="right"))
        phase = phases[number]
        return phase.rows.batch(step - int(ends[number]) + phase.steps, phase.batch_size, phase.micro_batches)

    return batches
