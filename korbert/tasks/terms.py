"""Hashed terms of a text: what a linear model reads of its words.

Terms are pieces and pairs of neighbouring pieces, and the character n-grams of the lower-case text without its white
space (1 to 4). With n-grams inside words alone, random spaces cost a model of words 2.4 points of accuracy with 1,000
reviews, and 3 with 3,000 comments; with n-grams across words, they cost 1 and 2.4. Pieces are morphemes, or parts of
rare ones; on four sets they were as good as morphemes with their tags.

Saved models depend on everything in this module: a change needs a new TERMS_VERSION (korbert/modeling/linear.py).

A term is a number: its group (pieces or characters, of the first or the second text of a row) and, in the lowest
HASH_BITS bits, a hash. A model stores no text, but whether a given piece occurred in training can be tested.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.modeling import HASH_BITS
from korbert.tasks.passages import Passage
from korbert.training import positions_of

GROUPS_PER_TEXT = 2  # pieces, characters
_SIZES = (1, 2, 3, 4)  # of character n-grams
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, as in Fibonacci hashing (Knuth 1998, 6.4)


class Terms(NamedTuple):
    """The terms of N rows. ids: (n,) int64, in order within a row; counts: (n,) float32; offsets: (N + 1,) int64."""

    ids: NDArray[np.int64]
    counts: NDArray[np.float32]
    offsets: NDArray[np.int64]

    def select(self, rows: NDArray[np.int64]) -> "Terms":
        """The terms of some rows."""
        places = positions_of(self.offsets, rows)
        offsets = np.cumsum([0, *np.diff(self.offsets)[rows]], dtype=np.int64)
        return Terms(self.ids[places], self.counts[places], offsets)

    def without_terms(self) -> "Terms":
        """As many rows without terms."""
        return Terms(self.ids[:0], self.counts[:0], np.zeros_like(self.offsets))


def terms_of(rows: Sequence[Sequence[Passage]]) -> Terms:
    """The terms of rows of one or two texts each."""
    ids = [np.empty(0, np.int64)]
    counts = [np.empty(0, np.float32)]
    for passages in rows:
        ids_of_texts = [term_ids(passage, text) for text, passage in enumerate(passages)]
        row_ids, row_counts = np.unique(np.concatenate(ids_of_texts), return_counts=True)
        ids.append(row_ids)
        counts.append(row_counts.astype(np.float32))
    return Terms(np.concatenate(ids), np.concatenate(counts), np.cumsum([len(row) for row in ids], dtype=np.int64))


def term_ids(passage: Passage, text: int) -> NDArray[np.int64]:
    """The terms of a text of a row, each as often as it occurs. text: its number in the row."""
    groups = _pieces(passage), _characters(passage.text)
    return np.concatenate([_hashed(values, text * GROUPS_PER_TEXT + group) for group, values in enumerate(groups)])


def piece_terms(ids: NDArray[np.integer]) -> NDArray[np.int64]:
    """The terms of single pieces, in the first text of a row."""
    return _hashed(ids.astype(np.uint64) + np.uint64(1), 0)


def term_spans(passage: Passage) -> NDArray[np.int64]:
    """The characters [start, end) that each of `term_ids` covers, (n, 2); of two pieces, from the first to the last."""
    spans = passage.spans.astype(np.int64)
    pairs = np.stack([spans[:-1, 0], spans[1:, 1]], axis=1) if len(spans) > 1 else np.empty((0, 2), np.int64)
    places = np.array(
        [place for place, character in enumerate(passage.text) for _ in "".join(character.lower().split())], np.int64
    )
    characters = [
        np.stack([places[: len(places) - size + 1], places[size - 1 :] + 1], axis=1)
        for size in _SIZES
        if size <= len(places)
    ]
    return np.concatenate([spans, pairs, *characters])


def _hashed(values: NDArray[np.uint64], group: int) -> NDArray[np.int64]:
    hashes = (values * _MULTIPLIER) >> np.uint64(64 - HASH_BITS)
    return hashes.astype(np.int64) | (group << HASH_BITS)


def _pieces(passage: Passage) -> NDArray[np.uint64]:
    """Each piece, and each pair of neighbours, as a number of its own."""
    ids = passage.ids.astype(np.uint64) + np.uint64(1)
    return np.concatenate([ids, (ids[:-1] << np.uint64(32)) | ids[1:]])


def _characters(text: str) -> NDArray[np.uint64]:
    """The n-grams of the text without white space as numbers: exact up to three characters, mixed for four."""
    codes = np.frombuffer("".join(text.lower().split()).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    ngrams = [np.empty(0, np.uint64)]
    for size in _SIZES[: len(codes)]:
        count = len(codes) - size + 1
        values = np.zeros(count, np.uint64)
        for place in range(size):
            values = (values * np.uint64(0x110001)) + codes[place : place + count]
        ngrams.append(values)
    return np.concatenate(ngrams)
