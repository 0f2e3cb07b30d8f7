"""Rows and batches of pretraining, made from the shards on demand.

An example is a pure function of (seed, epoch, its number): its random generator is counter-based. Batch size,
accumulation and world size do not change it, and any step's batch can be made without the previous ones.
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
from korbert.pretraining.draws import Draws, ranges
from korbert.pretraining.mixing import Mixture
from korbert.pretraining.objective_settings import MaskingSettings, ObjectiveName, PairSettings
from korbert.pretraining.objectives.masking import SpecialIds, choose_positions, mask_pieces, units_of
from korbert.pretraining.objectives.pairs import NO_LABEL, Pairs, Segments, cut_into_rows
from korbert.pretraining.objectives.spans import Asked, RecurringSpans, span_columns
from korbert.pretraining.objectives.vocabulary import Negatives
from korbert.pretraining.shards import Shards
from korbert.seeds import derived_seed
from korbert.system import World, current_world, require_rows
from korbert.tokenization import PieceArrays
from korbert.training import Batch

Columns = dict[str, NDArray[Any]]


class PretrainingRows:
    """Makes the rows of pretraining, each from its epoch and number. files: shards; ids: those of the special tokens;
    max_length: pieces per row, special tokens included.

    objectives: with none of "nsp", "sop", "spans", an example is one segment. fill: packing: a row takes as many
    consecutive examples as fit, also of several documents; each has its own [CLS] and attends only to itself.
    negatives: their sampler, for sampled softmax. spans: with "spans", finds them. shares: of the sources among
    the rows, see Mixture.
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

        before: rows that earlier phases have taken.
        here: of several processes, the one to make rows for: every size-th row, in micro-batches of the usual size.
        Micro-batches have similar numbers of pieces, and examples sorted by length. One with R examples,
        concatenated to N pieces, has:
        input_ids, token_type_ids, boundaries: (N,) int64; label_places, labels: (M,) int64, the positions
        to predict among the N, and their original pieces; pair_label: (R,) int64, -100 without a pair;
        NAME_count: labels of each objective in all micro-batches, by which its loss is divided;
        lengths: pieces of each example, a tuple; pieces: N; slots: those that attention computes, padding included;
        negatives, log_expected: with a sampled head, as Negatives.draw gives them, the same in all micro-batches;
        lots: with "rtd", (M,) uniform, float64; with "spans", what span_columns gives.
        """
        here = here or World()
        places = before + step * batch_size + np.arange(batch_size)[here.share]
        examples = self._drawn(*self._numbers(*np.divmod(places, len(self))))
        order = np.argsort(examples.sizes, kind="stable")
        # Same number in every process, none empty, and none larger than with one process, except a row left over.
        number = max(1, min(-(-micro_batches // here.size), batch_size // here.size))
        parts = [self._columns(examples.rows(order[first::number])) for first in range(number)]

        # Labels of each objective in all micro-batches: the divisors of its losses.
        pairs = int((examples.segments.labels != NO_LABEL).sum())
        pieces = int(examples.sizes.sum())
        counts = {"nsp": pairs, "sop": pairs, "rtd": pieces, "distill": pieces}
        counts["mlm"] = sum(len(columns["labels"]) for columns in parts)
        counts["spans"] = len(examples.asked)
        names = (*self._objectives, "mlm") if "rtd" in self._objectives else self._objectives
        shared = {"weight": torch.tensor(1.0), **{f"{name}_count": torch.tensor(counts[name]) for name in names}}
        if self._negatives:
            shared |= self._negatives.draw(np.random.default_rng(derived_seed(self._key, "negatives", step)))
        return [{**_batch_of(columns), **shared} for columns in parts]

    def source(self, number: int) -> str:
        """The source of an example's first segment."""
        document = int(self._shards.document(self._pairs.starts[number]))
        return self._shards.source_names[int(self._shards.sources[document])]

    def example(self, epoch: int, number: int) -> Columns:
        """An example, int64: input_ids, token_type_ids, boundaries (T,), T at most max_length; label_places and labels
        (M,), ascending; pair_label (1,); with "spans" answer (2,) or (0,); with "rtd" lots (M,) float64."""
        row = self._columns(self._drawn(np.array([epoch]), np.array([number])))
        if self._spans:
            row["answer"] = row.pop("answers").reshape(-1)
            del row["asked"]
        del row["lengths"]
        return row

    def _numbers(
        self, epochs: NDArray[np.int64], places: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Epochs and numbers of the examples in the rows at these places. epochs: ascending."""
        parts = [self._mixture.rows(epoch, places[epochs == epoch]) for epoch in np.unique(epochs).tolist()]
        epochs, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
        if self._first is None:
            return epochs, rows
        counts = self._first[rows + 1] - self._first[rows]
        return np.repeat(epochs, counts), ranges(self._first[rows], counts)

    def _drawn(self, epochs: NDArray[np.int64], numbers: NDArray[np.int64]) -> "_Examples":
        """Chooses the segments of examples."""
        draws = Draws.of(self._key, epochs, numbers)
        pairs = not {"nsp", "sop"}.isdisjoint(self._objectives)
        single = self._pairs.single(numbers)
        segments = self._pairs.draw(numbers, draws, swapping="sop" in self._objectives) if pairs else single
        asked: dict[int, Asked] = {}
        if self._spans:
            for index, (epoch, number) in enumerate(zip(epochs.tolist(), numbers.tolist(), strict=True)):
                rng = np.random.Generator(np.random.Philox(key=[self._key, epoch], counter=[0, 0, 0, number]))
                start, length = int(single.starts[index, 0]), int(single.lengths[index, 0])
                if question := self._spans.ask(self._shards.pieces(start, start + length), rng):
                    asked[index] = question
                    segments.lengths[index] = len(question.question[0]), len(question.context[0])
                    segments.labels[index] = NO_LABEL
        return _Examples(draws, segments, asked)

    def _columns(self, examples: "_Examples") -> Columns:
        """The columns that `example` has, concatenated over all examples, and lengths (R,).

        With "spans" also asked (A,), the indices of the examples with a question, and answers (A, 2), the first and
        last piece of each answer.
        """
        sizes, lengths = examples.sizes, examples.segments.lengths
        firsts = np.cumsum(sizes) - sizes
        heads = 2 + lengths[:, 0]  # [CLS] A [SEP]
        begins = firsts[:, None] + np.stack([np.ones_like(sizes), heads], axis=1)  # of the segments
        segment_places = ranges(begins.ravel(), lengths.ravel())
        ids = np.full(sizes.sum(), self._special_ids.sep, dtype=np.int64)
        ids[firsts] = self._special_ids.cls
        boundaries = np.zeros(len(ids), dtype=np.int64)
        ids[segment_places], boundaries[segment_places] = self._pieces(examples)
        segments = np.repeat(np.tile([0, 1], len(sizes)), np.stack([heads, sizes - heads], axis=1).ravel())

        # Choose what is masked. In an example with a question, nothing is masked besides the spans.
        question_rows = np.array(sorted(examples.asked), dtype=np.int64)
        maskable = np.zeros(len(ids), dtype=bool)
        maskable[segment_places] = True
        counts = lengths.sum(axis=1)
        counts[question_rows] = 0
        maskable[ranges(firsts[question_rows], sizes[question_rows])] = False
        units = units_of(boundaries, maskable, self._masking.unit)
        label_places = np.flatnonzero(maskable)[choose_positions(units, counts, self._masking.rate, examples.draws)]
        masked = np.diff(label_places.searchsorted([*firsts, len(ids)]))  # per example
        columns = {
            "input_ids": mask_pieces(ids, label_places, masked, self._masking, self._special_ids, examples.draws),
            "token_type_ids": segments,
            "boundaries": boundaries,
            "label_places": label_places,
            "labels": ids[label_places],
            "pair_label": examples.segments.labels,
            "lengths": sizes,
        }
        if "rtd" in self._objectives:
            columns["lots"] = examples.draws.uniform("lots", masked)
        if self._spans:
            columns["asked"] = question_rows
            answers = [examples.asked[row].answer for row in question_rows.tolist()]
            columns["answers"] = heads[question_rows, None] + np.array(answers, dtype=np.int64).reshape(-1, 2)
        return columns

    def _pieces(self, examples: "_Examples") -> PieceArrays:
        """Ids and boundaries of all segments, one after the other."""
        segments = examples.segments
        if not examples.asked:
            return self._shards.gather(segments.starts.ravel(), segments.lengths.ravel())
        parts = []
        for number, (starts, lengths) in enumerate(zip(segments.starts, segments.lengths, strict=True)):
            question = examples.asked.get(number)
            parts += [question.question, question.context] if question else [self._shards.gather(starts, lengths)]
        ids, boundaries = zip(*parts, strict=True)
        return np.concatenate(ids), np.concatenate(boundaries)


@dataclass(frozen=True, slots=True)
class _Examples:
    """R examples with their segments. asked: index of an example with a question -> question and context.

    `segments` has the lengths of those too, but not their places.
    """

    draws: Draws
    segments: Segments
    asked: Mapping[int, Asked]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(R,) pieces of each example, special tokens included: [CLS] A [SEP] or [CLS] A [SEP] B [SEP]."""
        lengths = self.segments.lengths
        return 2 + lengths.sum(axis=1) + (lengths[:, 1] > 0)

    def rows(self, which: NDArray[np.int64]) -> "_Examples":
        """The examples with these indices."""
        questions = {index: self.asked[number] for index, number in enumerate(which.tolist()) if number in self.asked}
        return _Examples(self.draws.rows(which), self.segments.rows(which), questions)


def _batch_of(columns: Columns) -> Batch:
    """The columns of a micro-batch as tensors, with lengths and totals."""
    lengths = tuple(columns.pop("lengths").tolist())
    spans: Batch = {}
    if "asked" in columns:
        spans = span_columns(columns["token_type_ids"], lengths, columns.pop("asked"), columns.pop("answers"))
    layout = Rows(lengths, torch.device("cpu"))
    return {
        **{name: torch.from_numpy(column) for name, column in columns.items()},
        **spans,
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

    With several processes, each makes its own part.
    """
    ends = np.cumsum([phase.steps for phase in phases])
    return partial(_batches_of, tuple(phases), ends, current_world())  # can be pickled


def _batches_of(phases: Sequence[Phase], ends: NDArray[np.int64], world: World, step: int) -> list[Batch]:
    number = int(np.searchsorted(ends, step, side="right"))
    phase = phases[number]
    phase_step = step - int(ends[number]) + phase.steps
    return phase.rows.batch(phase_step, phase.batch_size, phase.micro_batches, world, before=phase.before)
