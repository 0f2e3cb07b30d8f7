"""Rows and batches of pretraining, made from the shards when they are asked for.

A row is a pure function of (seed, epoch, its number) through a counter-based generator. Batch size, accumulation and
the number of processes do not change it, and the batch of any step is made without those before it.
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
from korbert.pretraining.pairs import Pairs
from korbert.pretraining.permutation import permuted
from korbert.pretraining.settings import MaskingSettings, PairSettings
from korbert.pretraining.shards import Shards
from korbert.seeds import derived_seed
from korbert.training.devices import Batch
from korbert.training.padding import padded
from korbert.world import World, connected, require_rows

__all__ = ["Layout", "Phase", "PretrainingRows", "heldout_batches", "in_phases", "located"]

Row = dict[str, NDArray[np.int64]]

_IGNORED = -100  # label: no loss
_FRAME = 3  # [CLS] A [SEP] B [SEP]


@dataclass(frozen=True, slots=True)
class Layout:
    """Facts about a batch that the loss needs on the processor.

    lengths: (B,) pieces of each row. labels_before: (B + 1,) MLM labels in the rows before each, and in all rows.
    """

    lengths: tuple[int, ...]
    labels_before: tuple[int, ...]


class PretrainingRows:
    """Rows by epoch and number. files: shards; max_length: pieces a row, special tokens included."""

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

    def batch(self, step: int, batch_size: int, micro_batches: int = 1, here: World | None = None) -> list[Batch]:
        """The rows of step `step` (0-based): the next batch_size of an endless series of shuffled epochs.

        here: makes the part of one of several processes: every size-th row, in micro-batches as large as without.
        They are sorted by length, so that each micro-batch holds rows of similar length. A micro-batch has, with T its
        longest row:
        input_ids, attention_mask, token_type_ids, boundaries, labels (-100: no loss): (B, T) int64;
        next_sentence_label: (B,); label_rows, label_columns: (N,), the places of its labels, row by row;
        mlm_count, nsp_count: labels of all these rows, by which `pretraining_loss` divides; layout: a Layout.
        """
        here = here or World()
        epochs, places = np.divmod(step * batch_size + np.arange(batch_size)[here.share], len(self))
        rows: list[Row] = []
        for epoch in np.unique(epochs).tolist():
            shuffled = permuted(places[epochs == epoch], len(self), derived_seed(self._key, epoch))
            rows += [self.row(epoch, index) for index in shuffled.tolist()]
        rows.sort(key=lambda row: len(row["input_ids"]))

        counts = {
            "weight": torch.tensor(1.0),  # the counts make the loss of each micro-batch its share of the step
            "mlm_count": torch.tensor(sum(int((row["labels"] != _IGNORED).sum()) for row in rows)),
            "nsp_count": torch.tensor(sum(int((row["next_sentence_label"] != _IGNORED).sum()) for row in rows)),
        }
        fillers = {"input_ids": self._ids.pad, "token_type_ids": 0, "boundaries": 0, "labels": _IGNORED}
        batches: list[Batch] = []
        for part in np.array_split(np.arange(len(rows)), shared_out(micro_batches, batch_size, here)):
            if part.size:
                own = rows[part[0] : part[-1] + 1]
                tensors = padded(own, fillers)
                pair_labels = torch.from_numpy(np.concatenate([row["next_sentence_label"] for row in own]))
                where = located(tensors["labels"], tensors["attention_mask"])
                batches.append({**tensors, "next_sentence_label": pair_labels, **where, **counts})
        return batches

    def row(self, epoch: int, index: int) -> Row:
        """int64: input_ids, token_type_ids, boundaries, labels (T,), T at most max_length; next_sentence_label (1,)."""
        rng = np.random.Generator(np.random.Philox(key=[self._key, epoch], counter=[0, 0, 0, index]))
        pair = self._pairs.draw(index, rng)

        # [CLS] A [SEP] or [CLS] A [SEP] B [SEP]; the pieces between the special tokens may be masked.
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


def shared_out(micro_batches: int, rows: int, here: World) -> int:
    """How many micro-batches each process makes of its rows: the same number in all, each with at least one row.

    None has more rows than without the other processes, or one more where these cannot be shared evenly.
    """
    return max(1, min(-(-micro_batches // here.size), rows // here.size))


def located(labels: Tensor, attention_mask: Tensor) -> dict[str, Any]:
    """label_rows, label_columns and layout of a batch. labels, attention_mask: (B, T), on the processor."""
    chosen = labels != _IGNORED
    label_rows, label_columns = chosen.nonzero(as_tuple=True)
    before = [0, *chosen.sum(dim=1).cumsum(0).tolist()]
    layout = Layout(tuple(attention_mask.sum(dim=1).tolist()), tuple(before))
    return {"label_rows": label_rows, "label_columns": label_columns, "layout": layout}


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
    """Fixed batches for evaluation: at most limit_rows rows, every chosen piece replaced by [MASK].

    Of several connected processes each makes its own part. SettingsError where one would have no row.

    With 80/10/10 a model gains 0.6 nats by copying the pieces that are kept, which would look like learning.
    """
    hiding_all = masking.model_copy(update={"mask_share": 1.0, "random_share": 0.0})
    rows = PretrainingRows(files, ids, max_length, hiding_all, pairs, seed)
    number = min(limit_rows, len(rows))
    require_rows("heldout_rows", number)
    return rows.batch(0, number, -(-number // batch_size), connected())


@dataclass(frozen=True, slots=True)
class Phase:
    """A number of steps with rows of one maximum length."""

    rows: PretrainingRows
    steps: int
    batch_size: int
    micro_batches: int = 1


def in_phases(phases: Sequence[Phase]) -> Callable[[int], list[Batch]]:
    """The batches of one phase after the other, as `fit` takes them. Each phase counts its steps from 0.

    Of several connected processes each makes its own part.
    """
    here = connected()
    ends = np.cumsum([phase.steps for phase in phases])

    def batches(step: int) -> list[Batch]:
        number = int(np.searchsorted(ends, step, side="right"))
        phase = phases[number]
        return phase.rows.batch(step - int(ends[number]) + phase.steps, phase.batch_size, phase.micro_batches, here)

    return batches
