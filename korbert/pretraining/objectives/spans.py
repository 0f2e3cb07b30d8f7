"""Recurring span selection (spans; Ram et al. 2021): reading comprehension rows from plain text.

Where a span of several morphemes occurs in two sentences of a passage, one of these sentences becomes the question,
with [MASK] in the place of the span, and the rest of the passage the context. One occurrence of the span stays there,
the others are hidden, too. The head points at the one that stayed, as that of `korquad` points at an answer; in the
paper one token of the passage itself asks, and a head of its own answers.

Nothing else is masked in such a row; masked language modelling learns from the others. Masking more would give the
answer away, since the answer itself is never masked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from korbert.modeling import PretrainingModel, Rows
from korbert.pretraining.objective_settings import SpanSettings
from korbert.pretraining.objectives.objective import Objective, sums
from korbert.tokenization import EOJEOL, SENTENCE, PieceArrays
from korbert.training import Batch


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its context as pieces. answer: first and last piece of the context's span, from 0."""

    question: PieceArrays
    context: PieceArrays
    answer: tuple[int, int]


class RecurringSpans:
    """Finds recurring spans. counts: (V,) of each piece in the training text; 1 is added to each count."""

    def __init__(self, settings: SpanSettings, mask_id: int, counts: NDArray[np.int64]) -> None:
        self._settings = settings
        self._mask_id = mask_id
        self._is_rare = -np.log((counts + 1) / (counts + 1).sum()) >= settings.rarity  # (V,)

    def ask(self, pieces: PieceArrays, rng: np.random.Generator) -> Asked | None:
        """Makes a question on a passage. None if no span fits, and for the share of passages that are not asked."""
        if rng.random() >= self._settings.share:
            return None
        ids, levels = pieces
        sentences = np.cumsum(levels == SENTENCE)  # of each piece, by number
        for places, length in self._recurring(ids, levels, rng):
            query_place = int(rng.choice(places))
            other_places = places[sentences[places] != sentences[query_place]]
            if not len(other_places):
                continue
            answer_place = int(rng.choice(other_places))
            first, end = sentences.searchsorted((sentences[query_place], sentences[query_place] + 1))

            # What is hidden becomes one [MASK]; the sentence that asks leaves the passage.
            is_kept = np.ones(len(ids), dtype=bool)
            masked_ids = ids.copy()
            for place in places[places != answer_place].tolist():
                masked_ids[place] = self._mask_id
                is_kept[place + 1 : place + length] = False
            query = np.flatnonzero(is_kept[first:end]) + first
            max_query = self._settings.max_query_pieces
            begin = max(0, min(int(query.searchsorted(query_place)) - max_query // 2, len(query) - max_query))
            query = query[begin : begin + max_query]
            is_kept[first:end] = False
            context = np.flatnonzero(is_kept)
            answer_start = int(context.searchsorted(answer_place))
            return Asked(
                (masked_ids[query], levels[query]),
                (masked_ids[context], levels[context]),
                (answer_start, answer_start + length - 1),
            )
        return None

    def _recurring(
        self, ids: NDArray[np.int32], levels: NDArray[np.uint8], rng: np.random.Generator
    ) -> Iterator[tuple[NDArray[np.int64], int]]:
        """Occurrences and lengths of spans that occur at least twice, in random order: ((n,) ascending places, pieces).

        A span begins with an eojeol, ends with a morpheme, and is as long as all of its occurrences agree.
        """
        max_pieces = self._settings.max_pieces
        begins = np.flatnonzero(levels[:-1] >= EOJEOL)
        begins = begins[levels[begins + 1] != SENTENCE]
        pairs = ids[begins].astype(np.int64) << 32 | ids[begins + 1]
        _, group, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        for number in rng.permutation(np.flatnonzero(counts > 1)).tolist():
            places = begins[group == number]
            # (n, max_pieces + 1): whether each piece is that of the first occurrence, and no sentence begins there.
            window = places[:, None] + np.arange(max_pieces + 1)
            in_text = window < len(ids)
            window = np.minimum(window, len(ids) - 1)
            alike = (in_text & (ids[window] == ids[window[0]]) & (levels[window] != SENTENCE)).all(axis=0)
            alike[0] = True
            length = max_pieces if alike.all() else int(alike.argmin())
            ends = (~in_text | (levels[window] > 0)).all(axis=0)  # a morpheme begins there in each
            while length and not ends[length]:
                length -= 1
            if not length or (np.diff(places) < length).any():
                continue
            morphemes = (levels[window[:, :length]] > 0).sum(axis=1).min()
            if morphemes >= self._settings.min_morphemes and self._is_rare[ids[window[0, :length]]].any():
                yield places, length


class SpanSelection(Objective):
    """The first and the last piece of the span, by the reader's head among [CLS] and the context's pieces."""

    name = "spans"

    def loss(self, model: PretrainingModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        """The mean of both cross entropies, summed over rows."""
        scores = self._scores(model, vectors, batch)
        return F.cross_entropy(scores.flatten(0, 1), batch["span_targets"].flatten(), reduction="sum") / 2

    def score(self, model: PretrainingModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        best = self._scores(model, vectors, batch).argmax(dim=2)
        return sums(self.loss(model, vectors, batch, rows), (best == batch["span_targets"]).all(dim=1))

    def _scores(self, model: PretrainingModel, vectors: Tensor, batch: Batch) -> Tensor:
        """(S, 2, T) float32, padded with -inf after the choices of a row. vectors: (N, D)."""
        assert model.reader is not None  # of a model with "spans"
        ends = model.reader(vectors[batch["span_choices"]]).float()  # (M, 2)
        rows = len(batch["span_targets"])
        longest = batch["span_longest"]
        spread = ends.new_full((rows * longest, 2), float("-inf")).index_copy(0, batch["span_slots"], ends)
        return spread.view(rows, longest, 2).transpose(1, 2)


def span_columns(
    token_type_ids: NDArray[np.int64], lengths: Sequence[int], asked: NDArray[np.int64], answers: NDArray[np.int64]
) -> Batch:
    """Makes the columns that SpanSelection reads, for the S examples of a flat batch that have a span.

    token_type_ids: (N,) of the batch. lengths: pieces of each example. asked: (S,) the numbers of the examples with a
    span. answers: (S, 2), the places of the span's first and last piece in the example. span_choices: (M,) int64, the
    places of [CLS] and of the context's pieces; span_slots: (M,) int64, the index of each in the flattened (S,
    span_longest) scores; span_longest: choices of the longest row; span_targets: (S, 2) int64, first and last among the
    choices of the row.
    """
    empty: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    choices = []
    targets = []
    starts = np.cumsum([0, *lengths]).tolist()
    for number, answer in zip(asked.tolist(), answers, strict=True):
        context = np.flatnonzero(token_type_ids[starts[number] : starts[number + 1]])[:-1]  # without [SEP]
        choices.append(starts[number] + np.concatenate([[0], context]))
        targets.append(answer - context[0] + 1)
    longest = max((len(places) for places in choices), default=1)
    slots = [number * longest + np.arange(len(places)) for number, places in enumerate(choices)]
    return {
        "span_choices": torch.from_numpy(np.concatenate([empty, *choices])),
        "span_slots": torch.from_numpy(np.concatenate([empty, *slots])),
        "span_targets": torch.from_numpy(np.concatenate([empty, *targets]).reshape(-1, 2)),
        "span_longest": longest,
    }
