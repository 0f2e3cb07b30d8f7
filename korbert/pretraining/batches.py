"""Rows and batches of pretraining, made from the shards on demand.

An example is a pure function of (seed, epoch, its number) through a counter-based generator. Batch size, accumulation
and the number of processes do not change it, and any step's batch can be made without the previous ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.modeling import Rows
from korbert.pretraining.mixing import Mixture
from korbert.pretraining.objective_settings import MaskingSettings, ObjectiveName, PairSettings
from korbert.pretraining.objectives.masking import SpecialIds, choose_positions, mask_pieces, units_of
from korbert.pretraining.objectives.pairs import NO_LABEL, Pairs, cut_into_rows
from korbert.pretraining.objectives.spans import RecurringSpans, span_columns
from korbert.pretraining.objectives.vocabulary import Negatives
from korbert.pretraining.shards import Shards
from korbert.seeds import derived_seed
from korbert.system import World, current_world, require_rows
from korbert.tokenization import PieceArrays
from korbert.training import Batch

Row = dict[str, NDArray[Any]]


class PretrainingRows:
    """Makes the rows of pretraining, each from its epoch and number. files: shards; ids: those of the special tokens;
    max_length: pieces a row, special tokens included.

    objectives: a row is one segment without "nsp", "sop" and "spans". fill: a row takes as many consecutive examples of
    the corpus as fit, of one document or of several; each keeps its own [CLS], and attention stays within an example.
    negatives: the sampler of a sampled vocabulary head. spans: with "spans", finds them. shares: of the sources among
    the rows, as Mixture takes them.
    """

    def __init__(
        self,
        files: Sequence[Path] | Shards,
        ids: SpecialIds,
        max_length: int,
        masking: MaskingSettings,
        pairs: PairSettings,
        seed: int,
        *,
        objectives: Sequence[ObjectiveName] = ("mlm", "nsp"),
        fill: bool = False,
        negatives: Negatives | None = None,
        spans: RecurringSpans | None = None,
        shares: Mapping[str, float] | None = None,
    ) -> None:
        frame = 3 if {"nsp", "sop", "spans"} & set(objectives) else 2  # [CLS] A [SEP] B [SEP], or [CLS] A [SEP]
        if max_length < frame + 2:
            raise SettingsError(
                "max_length {max_length}: {frame} of these are special; take at least {frame2}",
                max_length=max_length,
                frame=frame,
                frame2=frame + 2,
            )
        self._shards = files if isinstance(files, Shards) else Shards(files)
        self._pairs = Pairs(self._shards, max_length - frame, pairs)
        self._first = cut_into_rows(self._pairs.lengths + frame, max_length) if fill else None
        self._special_ids = ids
        self._masking = masking
        self._objectives = tuple(objectives)
        self._negatives = negatives
        self._spans = spans
        self._key = derived_seed("rows", seed, max_length)
        starts = self._pairs.starts if self._first is None else self._pairs.starts[self._first[:-1]]
        self._mixture = Mixture(self._shards, starts, shares or {}, self._key)

    def __len__(self) -> int:
        """Rows of one epoch."""
        return len(self._pairs) if self._first is None else len(self._first) - 1

    def batch(
        self, step: int, batch_size: int, micro_batches: int = 1, here: World | None = None, *, before: int = 0
    ) -> list[Batch]:
        """The rows of step `step` (0-based): the next batch_size of an endless series of shuffled epochs.

        before: rows of that series that an earlier phase has taken.
        here: makes the part of one of several processes: every size-th row, in micro-batches as large as without.
        Micro-batches have like numbers of pieces; the examples of each are sorted by length. One with R examples,
        concatenated to N pieces, has:
        input_ids, token_type_ids, boundaries: (N,) int64; label_places, labels: (M,) int64, the places among the N
        whose vectors predict a piece, and these pieces; pair_label: (R,) int64, -100 without a pair;
        NAME_count for each objective: labels of all these rows, by which the losses are divided;
        lengths: pieces of each example, a tuple; pieces: N; slots: those that attention computes, padding included;
        negatives, log_expected: with a sampled head, as Negatives.draw gives them, the same in all micro-batches;
        lots: with "rtd", (M,) float64 in [0, 1); with "spans", what span_columns gives.
        """
        here = here or World()
        places = before + step * batch_size + np.arange(batch_size)[here.share]
        epochs, indices = np.divmod(places, len(self))
        rows: list[Row] = []
        for epoch in np.unique(epochs).tolist():
            numbers = self._mixture.rows(epoch, indices[epochs == epoch])
            rows += [row for its_epoch, index in numbers for row in self.examples(its_epoch, index)]
        rows.sort(key=lambda row: len(row["input_ids"]))

        # The labels of each objective, which make each loss its share of the step's.
        pairs = sum(int(row["pair_label"][0] != NO_LABEL) for row in rows)
        pieces = sum(len(row["input_ids"]) for row in rows)
        counts = {"nsp": pairs, "sop": pairs, "rtd": pieces, "distill": pieces}
        counts["mlm"] = sum(len(row["labels"]) for row in rows)
        counts["spans"] = sum(len(row.get("answer", ())) // 2 for row in rows)
        names = (*self._objectives, "mlm") if "rtd" in self._objectives else self._objectives
        shared = {"weight": torch.tensor(1.0), **{f"{name}_count": torch.tensor(counts[name]) for name in names}}
        if self._negatives:
            shared |= self._negatives.draw(np.random.default_rng(derived_seed(self._key, "negatives", step)))
        # Equally many in each process, none empty, and none larger than without the others, but for a row left over.
        number = max(1, min(-(-micro_batches // here.size), batch_size // here.size))
        return [{**_concatenate(rows[first::number]), **shared} for first in range(number)]

    def examples(self, epoch: int, row: int) -> list[Row]:
        """The examples of a row: one, of the row's own number, or with `fill` several."""
        if self._first is None:
            return [self.example(epoch, row)]
        return [self.example(epoch, number) for number in range(self._first[row], self._first[row + 1])]

    def source(self, number: int) -> str:
        """The source of an example's first segment."""
        document = int(self._shards.document(self._pairs.starts[number]))
        return self._shards.source_names[int(self._shards.sources[document])]

    def example(self, epoch: int, number: int) -> Row:
        """An example, int64: input_ids, token_type_ids, boundaries (T,), T at most max_length; label_places and labels
        (M,), ascending; pair_label (1,); with "spans" answer (2,) or (0,); with "rtd" lots (M,) float64."""
        rng = np.random.Generator(np.random.Philox(key=[self._key, epoch], counter=[0, 0, 0, number]))

        # The pieces of one segment or two, and which of them may be masked.
        asked = self._spans.ask(self._shards.pieces(*self._pairs.single(number).first), rng) if self._spans else None
        pair = self._pairs.single(number)
        if not asked and not {"nsp", "sop"}.isdisjoint(self._objectives):
            pair = self._pairs.draw(number, rng, swapping="sop" in self._objectives)
        segments = [self._shards.pieces(*span) for span in (pair.first, pair.second) if span is not None]
        if asked:
            segments = [asked.question, asked.context]
        ids, boundaries, numbers, maskable = _add_special_tokens(segments, self._special_ids)
        if asked:
            maskable[:] = False  # the row only learns to find its answer
        row: Row = {"token_type_ids": numbers, "boundaries": boundaries.astype(np.int64)}
        row["pair_label"] = np.array([pair.label])
        if self._spans:
            context = 2 + len(segments[0][0])  # where it begins
            row["answer"] = context + np.array(asked.answer) if asked else np.zeros(0, dtype=np.int64)

        units = units_of(boundaries, maskable, self._masking.unit)
        chosen = np.flatnonzero(maskable)[choose_positions(units, self._masking.rate, rng)]
        hidden = mask_pieces(ids, chosen, self._masking, self._special_ids, rng)
        lots = {"lots": rng.random(len(chosen))} if "rtd" in self._objectives else {}
        return row | {"input_ids": hidden, "label_places": chosen, "labels": ids[chosen], **lots}


def _add_special_tokens(
    segments: Sequence[PieceArrays], special: SpecialIds
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """[CLS] A [SEP] or [CLS] A [SEP] B [SEP], all (T,): ids, boundaries, segment numbers, True where not special."""
    length = 1 + sum(len(pieces) + 1 for pieces, _ in segments)
    ids = np.full(length, special.sep, dtype=np.int64)
    numbers = np.zeros(length, dtype=np.int64)
    boundaries = np.zeros(length, dtype=np.uint8)
    is_piece = np.zeros(length, dtype=bool)
    ids[0] = special.cls
    at = 1
    for number, (pieces, levels) in enumerate(segments):
        here = slice(at, at + len(pieces))
        ids[here] = pieces
        boundaries[here] = levels
        numbers[at:] = number
        is_piece[here] = True
        at = here.stop + 1
    return ids, boundaries, numbers, is_piece


def _concatenate(rows: Sequence[Row]) -> Batch:
    """The examples of a micro-batch, one after the other."""
    lengths = tuple(len(row["input_ids"]) for row in rows)
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    columns = {name: np.concatenate([row[name] for row in rows]) for name in sorted(rows[0].keys() - {"answer"})}
    columns["label_places"] += np.repeat(starts, [len(row["label_places"]) for row in rows])
    layout = Rows(lengths, torch.device("cpu"))
    return {
        **{name: torch.from_numpy(column) for name, column in columns.items()},
        **(span_columns(rows, starts) if "answer" in rows[0] else {}),
        "lengths": lengths,
        "pieces": layout.pieces,
        "slots": layout.num_slots,
    }


def heldout_batches(rows: PretrainingRows, limit: int, batch_size: int = 64) -> list[Batch]:
    """Fixed batches for evaluation: at most `limit` of the rows.

    With several connected processes, each makes its own part. SettingsError if one would have no row.
    """
    number = min(limit, len(rows))
    require_rows("heldout_rows", number)
    return rows.batch(0, number, -(-number // batch_size), current_world())


@dataclass(frozen=True, slots=True)
class Phase:
    """A number of steps with rows of one maximum length. before: rows that earlier phases of this length have taken."""

    rows: PretrainingRows
    steps: int
    batch_size: int
    micro_batches: int = 1
    before: int = 0


def in_phases(phases: Sequence[Phase]) -> Callable[[int], list[Batch]]:
    """The batches of all phases in turn, for `fit`. Each phase counts its steps from 0.

    Of several connected processes each makes its own part.
    """
    ends = np.cumsum([phase.steps for phase in phases])
    return partial(_batches_of, tuple(phases), ends, current_world())  # can be pickled


def _batches_of(phases: Sequence[Phase], ends: NDArray[np.int64], here: World, step: int) -> list[Batch]:
    number = int(np.searchsorted(ends, step, side="right"))
    phase = phases[number]
    own = step - int(ends[number]) + phase.steps
    return phase.rows.batch(own, phase.batch_size, phase.micro_batches, here, before=phase.before)
