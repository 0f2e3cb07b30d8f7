"""Which pieces make a row: examples cut from documents, and for half of the pairs a B from elsewhere (NSP).

How long the segments are, where they come from, whether B begins or ends with a sentence: nothing of this should tell
the label. So a foreign B has exactly the length of the B it replaces, is of the same source, runs from the beginning of
a sentence to the end of one, and like a real B never opens its document; and a row for which no such B is found has no
label, whichever it would have been.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from korbert.pretraining.settings import PairSettings
from korbert.pretraining.shards import Shards

__all__ = ["IS_NEXT", "NOT_NEXT", "NO_LABEL", "Pair", "Pairs", "cut_into_examples"]

IS_NEXT, NOT_NEXT = 0, 1  # as in Google's code and in transformers
NO_LABEL = -100

Span = tuple[int, int]  # places in Shards, half-open

_PLACES_A_TRY = 32  # of random sentences one in twenty or thirty begins a run that ends where it should


@dataclass(frozen=True, slots=True)
class Pair:
    """Segments of a row. second: None where the example is one sentence, or of a source without pairs.

    label: IS_NEXT, NOT_NEXT or NO_LABEL.
    """

    first: Span
    second: Span | None
    label: int


def cut_into_examples(shards: Shards, room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where examples begin and end, in order: together all documents, each of at most `room` pieces.

    From the beginning of a document each takes as many whole sentences as fit; a sentence longer than `room` is cut.
    All documents are cut at once, a round an example: a corpus has more sentences than Python can walk in a second.
    """
    starts, ends = [], []
    start, last = shards.edges[:-1], shards.edges[1:]
    start, last = start[start < last], last[start < last]
    while start.size:
        reach = np.minimum(start + room, last)
        end = shards.sentences[np.searchsorted(shards.sentences, reach, side="right") - 1]
        end = np.where(end > start, end, reach)
        starts.append(start)
        ends.append(end)
        start, last = end[end < last], last[end < last]
    order = np.argsort(np.concatenate(starts))
    return np.concatenate(starts)[order], np.concatenate(ends)[order]


class Pairs:
    """Examples of at most `room` pieces, by number, and the pairs drawn from them."""

    def __init__(self, shards: Shards, room: int, settings: PairSettings) -> None:
        self._shards, self._settings = shards, settings
        self._starts, self._ends = cut_into_examples(shards, room)
        self._inner = shards.sentences[~np.isin(shards.sentences, shards.edges, assume_unique=True)]
        self._runs = _runs_by_source(shards, self._inner)
        self._unpaired = np.isin(shards.source_names, settings.without)  # by source

    def __len__(self) -> int:
        return len(self._starts)

    def draw(self, example: int, rng: np.random.Generator) -> Pair:
        """A and B of this example: cut between two of its sentences; B is replaced or not, by the flip of a coin."""
        start, end = int(self._starts[example]), int(self._ends[example])
        after, until = self._shards.sentences.searchsorted((start + 1, end))
        if after == until or self._is_unpaired(start):
            return Pair((start, end), None, NO_LABEL)
        cut = int(self._shards.sentences[rng.integers(after, until)])
        foreign = self._foreign(start, end - cut, rng)
        if foreign is None:
            return Pair((start, cut), (cut, end), NO_LABEL)
        if rng.random() < self._settings.share_random:
            return Pair((start, cut), foreign, NOT_NEXT)
        return Pair((start, cut), (cut, end), IS_NEXT)

    def _is_unpaired(self, start: int) -> bool:
        if not self._unpaired.any():
            return False
        document = int(self._shards.edges.searchsorted(start, side="right")) - 1
        return bool(self._unpaired[self._shards.sources[document]])

    def _foreign(self, start: int, length: int, rng: np.random.Generator) -> Span | None:
        """Whole sentences of `length` pieces together, of another document of the same source; None if none is met."""
        sentences, edges = self._shards.sentences, self._shards.edges
        own = int(edges.searchsorted(start, side="right")) - 1
        firsts, ranks = self._runs[int(self._shards.sources[own])]
        for _ in range(self._settings.tries):
            rank = rng.integers(ranks[-1], size=_PLACES_A_TRY)
            run = ranks.searchsorted(rank, side="right") - 1
            begins = self._inner[firsts[run] + rank - ranks[run]]
            ends = begins + length
            fits = sentences[sentences.searchsorted(ends) % len(sentences)] == ends
            for begin in begins[fits]:
                document = int(edges.searchsorted(begin, side="right")) - 1
                if document != own and begin + length <= edges[document + 1]:
                    return int(begin), int(begin) + length
        return None


Runs = tuple[NDArray[np.int64], NDArray[np.int64]]


def _runs_by_source(shards: Shards, inner: NDArray[np.int64]) -> dict[int, Runs]:
    """For each source: the runs of consecutive entries of `inner` that are of it, as the first entry of each and ranks.

    ranks: how many entries of the source lie before each run, and the number of all: entry `r` of the source is in the
    last run whose rank is at most r. Parts of a corpus are sorted by source, so that runs are few.
    """
    sources = shards.sources[shards.document(inner)]
    firsts = np.flatnonzero(np.diff(sources, prepend=-1))
    lengths = np.diff(firsts, append=len(inner))
    return {
        int(source): (
            firsts[sources[firsts] == source],
            np.concatenate([[0], np.cumsum(lengths[sources[firsts] == source])]),
        )
        for source in np.unique(sources)
    }
