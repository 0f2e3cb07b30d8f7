"""Segments of a row: examples cut from documents; for half of the pairs a B from another document (nsp), or both
segments swapped (sop; Lan et al. 2020, 3.1).

Neither the lengths of the segments nor their source nor the place of B in its document may reveal the label. So a
foreign B has exactly the length of the B that it replaces, comes from the same source, consists of whole sentences, and
like a real B never opens its document. A row for which no such B is found has no label, whichever it would have had.
Swapped segments may begin with the first sentence of a document, in either order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from korbert.pretraining.objective_settings import PairSettings
from korbert.pretraining.shards import Shards

IS_NEXT = 0  # as in Google's code and in transformers
NOT_NEXT = 1
IN_ORDER = 0  # as in AlbertForPreTraining
SWAPPED = 1
NO_LABEL = -100

PlaceRange = tuple[int, int]  # places in Shards, half-open

_EXAMPLES_A_STRETCH = 4_096  # of rows that are filled
_PLACES_A_TRY = 32  # one in twenty to thirty random sentences begins a span that ends with a sentence


@dataclass(frozen=True, slots=True)
class Pair:
    """Segments of a row. second: None if the example is one sentence, or from a source without pairs.

    label: IS_NEXT or NOT_NEXT, IN_ORDER or SWAPPED, or NO_LABEL.
    """

    first: PlaceRange
    second: PlaceRange | None
    label: int


def cut_into_examples(shards: Shards, room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where examples begin and end, in order. They cover all documents and have at most `room` pieces.

    From the beginning of its document, an example takes as many whole sentences as fit; a longer sentence is cut.
    Each round cuts one example from every document at once: a loop over the sentences of a corpus would take long.
    """
    starts = []
    ends = []
    has_pieces = shards.edges[:-1] < shards.edges[1:]
    start = shards.edges[:-1][has_pieces]
    last = shards.edges[1:][has_pieces]
    while start.size:
        limit = np.minimum(start + room, last)
        end = shards.sentences[np.searchsorted(shards.sentences, limit, side="right") - 1]
        end = np.where(end > start, end, limit)
        starts.append(start)
        ends.append(end)
        start = end[end < last]
        last = last[end < last]
    order = np.argsort(np.concatenate(starts))
    return np.concatenate(starts)[order], np.concatenate(ends)[order]


def cut_into_rows(lengths: NDArray[np.int64], room: int) -> NDArray[np.int64]:
    """(rows + 1,): the first example of each row, and the end. A row takes the next examples while they fit.

    lengths: (examples,), each at most `room`. A new row begins every few thousand examples, so that each round cuts a
    row from all of these stretches at once.
    """
    ends = np.concatenate([[0], np.cumsum(lengths)])
    start = np.arange(0, len(lengths), _EXAMPLES_A_STRETCH)
    last = np.minimum(start + _EXAMPLES_A_STRETCH, len(lengths))
    firsts = [np.array([len(lengths)])]
    while start.size:
        firsts.append(start)
        start = np.minimum(np.searchsorted(ends, ends[start] + room, side="right") - 1, last)
        left = start < last
        start = start[left]
        last = last[left]
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
        self._inner = shards.sentences[~np.isin(shards.sentences, shards.edges, assume_unique=True)]
        self._runs = shards.runs(self._inner)
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

    def single(self, example: int) -> Pair:
        """The example as one segment."""
        return Pair((int(self.starts[example]), int(self._ends[example])), None, NO_LABEL)

    def draw(self, example: int, rng: np.random.Generator, *, swapping: bool = False) -> Pair:
        """The example, cut between two of its sentences into A and B; B is replaced with the chance share_random.

        swapping: instead, A and B change places half of the time.
        """
        single = self.single(example)
        start, end = single.first
        after, until = self._shards.sentences.searchsorted((start + 1, end))
        document = int(self._shards.document(start))
        if after == until or self._unpaired[self._shards.sources[document]]:
            return single
        cut = int(self._shards.sentences[rng.integers(after, until)])
        if swapping:
            if rng.random() < 0.5:
                return Pair((cut, end), (start, cut), SWAPPED)
            return Pair((start, cut), (cut, end), IN_ORDER)
        foreign = self._foreign(document, end - cut, rng)
        if foreign is None:
            return Pair((start, cut), (cut, end), NO_LABEL)
        if rng.random() < self._settings.share_random:
            return Pair((start, cut), foreign, NOT_NEXT)
        return Pair((start, cut), (cut, end), IS_NEXT)

    def _foreign(self, own: int, length: int, rng: np.random.Generator) -> PlaceRange | None:
        """Whole sentences of `length` pieces together, from another document of the same source; None if not found."""
        firsts, ranks = self._runs[int(self._shards.sources[own])]
        for _ in range(self._settings.tries):
            rank = rng.integers(ranks[-1], size=_PLACES_A_TRY)
            run = ranks.searchsorted(rank, side="right") - 1
            begins = self._inner[firsts[run] + rank - ranks[run]]
            ends = begins + length
            fits = (self._sentence_start_bits[ends >> 3] >> (ends & 7)) & 1
            for begin in begins[fits.nonzero()].tolist():
                document = int(self._shards.document(begin))
                if document != own and begin + length <= self._shards.edges[document + 1]:
                    return begin, begin + length
        return None
