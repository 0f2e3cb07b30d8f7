"""Segments of a row: examples cut from documents; for a share of the pairs a B from another document (nsp), or both
segments swapped (sop; Lan et al. 2020, 3.1).

Neither the lengths of the segments nor their source nor the place of B in its document may reveal the label. So a
foreign B has exactly the length of the B that it replaces, comes from the same source, consists of whole sentences, and
like a real B never opens its document. A row for which no such B is found has no label, whichever it would have had.
Swapped segments may begin with the first sentence of a document, in either order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from korbert.pretraining.draws import Draws
from korbert.pretraining.objective_settings import PairSettings
from korbert.pretraining.shards import Shards

IS_NEXT = 0  # as in Google's code and in transformers
NOT_NEXT = 1
IN_ORDER = 0  # as in AlbertForPreTraining
SWAPPED = 1
NO_LABEL = -100

_EXAMPLES_A_STRETCH = 4_096  # of rows that are filled
_PLACES_A_TRY = 32  # one in twenty to thirty random sentences begins a span that ends with a sentence


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of R rows, all int64.

    starts: (R, 2) places in Shards. lengths: (R, 2) pieces, of the second 0 if the example is one segment. labels: (R,)
    IS_NEXT or NOT_NEXT, IN_ORDER or SWAPPED, or NO_LABEL.
    """

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]

    def rows(self, which: NDArray[np.int64]) -> "Segments":
        """The segments of the rows with these indices."""
        return Segments(self.starts[which], self.lengths[which], self.labels[which])


def cut_into_examples(shards: Shards, room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where examples begin and end, in order. They cover all documents and have at most `room` pieces.

    From the beginning of its document, an example takes as many whole sentences as fit; a longer sentence is cut.
    Each round cuts one example from every document at once: a loop over the sentences of a corpus would take long.
    """
    starts = []
    ends = []
    has_pieces = shards.edges[:-1] < shards.edges[1:]
    start = shards.edges[:-1][has_pieces]
    document_end = shards.edges[1:][has_pieces]
    while start.size:
        limit = np.minimum(start + room, document_end)
        end = shards.sentences[np.searchsorted(shards.sentences, limit, side="right") - 1]
        end = np.where(end > start, end, limit)
        starts.append(start)
        ends.append(end)
        start = end[end < document_end]
        document_end = document_end[end < document_end]
    order = np.argsort(np.concatenate(starts))
    return np.concatenate(starts)[order], np.concatenate(ends)[order]


def cut_into_rows(lengths: NDArray[np.int64], room: int) -> NDArray[np.int64]:
    """(rows + 1,): the first example of each row, and the end. A row takes the next examples while they fit.

    lengths: (examples,), each at most `room`. A new row begins every few thousand examples, so that each round cuts a
    row from all of these stretches at once.
    """
    ends = np.concatenate([[0], np.cumsum(lengths)])
    start = np.arange(0, len(lengths), _EXAMPLES_A_STRETCH)
    stretch_end = np.minimum(start + _EXAMPLES_A_STRETCH, len(lengths))
    firsts = [np.array([len(lengths)])]
    while start.size:
        firsts.append(start)
        start = np.minimum(np.searchsorted(ends, ends[start] + room, side="right") - 1, stretch_end)
        unfinished = start < stretch_end
        start = start[unfinished]
        stretch_end = stretch_end[unfinished]
    return np.sort(np.concatenate(firsts))


class Pairs:
    """Pairs drawn from examples of at most `room` pieces.

    starts: (examples,) where each begins in the shards. lengths: (examples,) pieces of each, without special tokens.
    """

    def __init__(self, shards: Shards, room: int, settings: PairSettings) -> None:
        self._shards = shards
        self._settings = settings
        self.starts, self._ends = cut_into_examples(shards, room)
        self.lengths = self._ends - self.starts
        self._inner_starts = shards.sentences[~np.isin(shards.sentences, shards.edges, assume_unique=True)]
        self._runs = shards.runs(self._inner_starts)
        # A bit for each place up to `room` after the last: whether a sentence begins there. Place p is bit p % 8 of
        # byte p // 8. A lookup of one bit; a binary search would miss the cache some 20 times.
        places = shards.sentences
        # By hand, as np.packbits needs a byte for each piece of the corpus first.
        self._sentence_start_bits = np.zeros((int(places[-1]) + room) // 8 + 1, dtype=np.uint8)
        bytes_of = places >> 3
        firsts = np.flatnonzero(np.diff(bytes_of, prepend=-1))
        bits = np.left_shift(1, places & 7).astype(np.uint8)
        self._sentence_start_bits[bytes_of[firsts]] = np.bitwise_or.reduceat(bits, firsts)
        self._unpaired = np.isin(shards.source_names, settings.without)  # by source

    def __len__(self) -> int:
        return len(self.starts)

    def single(self, examples: NDArray[np.int64]) -> Segments:
        """The examples, (R,), as one segment each."""
        lengths = np.stack([self.lengths[examples], np.zeros_like(examples)], axis=1)
        starts = np.stack([self.starts[examples], self._ends[examples]], axis=1)
        return Segments(starts, lengths, np.full(len(examples), NO_LABEL))

    def draw(self, examples: NDArray[np.int64], draws: Draws, *, swapping: bool = False) -> Segments:
        """The examples, (R,), cut between two of their sentences into A and B; B is replaced with the chance
        share_random. An example of one sentence, or from a source without pairs, stays one segment without a label.

        swapping: instead, A and B change places half of the time.
        """
        start, end = self.starts[examples], self._ends[examples]
        first_cut = self._shards.sentences.searchsorted(start + 1)
        end_cut = self._shards.sentences.searchsorted(end)
        documents = self._shards.document(start)
        paired = (first_cut < end_cut) & ~self._unpaired[self._shards.sources[documents]]
        sentence = first_cut + (draws.uniform("cut") * (end_cut - first_cut)).astype(np.int64)
        cut = np.where(paired, self._shards.sentences[sentence], end)
        firsts = np.stack([start, cut - start], axis=1)  # where A begins, and its length
        seconds = np.stack([cut, end - cut], axis=1)
        labels = np.full(len(examples), NO_LABEL)
        if swapping:
            swapped = paired & (draws.uniform("swap") < 0.5)
            labels[paired] = IN_ORDER
            labels[swapped] = SWAPPED
            firsts[swapped], seconds[swapped] = seconds[swapped], firsts[swapped]
        else:
            foreign = self._foreign(documents, end - cut, np.flatnonzero(paired), draws)
            has_foreign = foreign >= 0
            replaced = has_foreign & (draws.uniform("pair") < self._settings.share_random)
            labels[has_foreign] = IS_NEXT
            labels[replaced] = NOT_NEXT
            seconds[replaced, 0] = foreign[replaced]
        segments = np.stack([firsts, seconds], axis=1)  # (R, 2, 2)
        return Segments(segments[..., 0], segments[..., 1], labels)

    def _foreign(
        self, documents: NDArray[np.int64], lengths: NDArray[np.int64], pending: NDArray[np.int64], draws: Draws
    ) -> NDArray[np.int64]:
        """Finds a foreign B for the rows `pending`: (R,), the place where it begins; -1 for none, and for other rows.

        B is whole sentences of exactly `lengths` pieces, (R,), in another document of the same source.
        """
        foreign = np.full(len(documents), -1)
        for attempt in range(self._settings.tries):
            counts = np.full(len(pending), _PLACES_A_TRY)
            fractions = draws.rows(pending).uniform("foreign", counts, skip=attempt * _PLACES_A_TRY)
            begins = self._inner_sentences(documents[pending], fractions.reshape(-1, _PLACES_A_TRY))
            ends = begins + lengths[pending, None]
            rows, columns = (self._sentence_start_bits[ends >> 3] >> (ends & 7) & 1).nonzero()
            begins = begins[rows, columns]
            other_documents = self._shards.document(begins)
            fits = other_documents != documents[pending[rows]]
            fits &= begins + lengths[pending[rows]] <= self._shards.edges[other_documents + 1]
            rows, first_fit = np.unique(rows[fits], return_index=True)
            foreign[pending[rows]] = begins[fits][first_fit]
            pending = np.delete(pending, rows)
            if not len(pending):
                break
        return foreign

    def _inner_sentences(self, documents: NDArray[np.int64], fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        """Picks sentences that do not open a document: (R, K) their places, in the source of each row's document.

        fractions: (R, K) in [0, 1), the position of each of K candidates among the sentences of the source.
        """
        sources = self._shards.sources[documents]
        places = np.empty(fractions.shape, dtype=np.int64)
        for source in np.unique(sources).tolist():
            of_source = sources == source
            firsts, run_ranks = self._runs[source]
            rank = (fractions[of_source] * run_ranks[-1]).astype(np.int64)
            run = run_ranks.searchsorted(rank, side="right") - 1
            places[of_source] = self._inner_starts[firsts[run] + rank - run_ranks[run]]
        return places
