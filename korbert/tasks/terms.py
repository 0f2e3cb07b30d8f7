"""Hashed terms of a text: what a linear model reads of its words.

Terms are pieces and pairs of neighbouring pieces, and the character n-grams of its words (2 to 4, of lower-case text,
with a space on each side of a word, as `char_wb` of scikit-learn has them). Pieces are morphemes, or parts of rare
ones; on four sets they were as good as morphemes with their tags.

A term is a number: its group (pieces or characters, of the first or the second text of a row) and, in the lowest
HASH_BITS bits, a hash. A model stores no text, but whether a given piece occurred in training can be tested.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.modeling import HASH_BITS
from korbert.tasks.passages import Passage
from korbert.training import positions_of

GROUPS_PER_TEXT = 2  # pieces, characters
_SIZES = (2, 3, 4)  # of character n-grams
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


def terms_of(rows: Sequence[Sequence[Passage]]) -> Terms:
    """The terms of rows of one or two texts each."""
    ids = [np.empty(0, np.int64)]
    counts = [np.empty(0, np.float32)]
    for passages in rows:
        of_texts = [term_ids(passage, text) for text, passage in enumerate(passages)]
        own, times = np.unique(np.concatenate(of_texts), return_counts=True)
        ids.append(own)
        counts.append(times.astype(np.float32))
    return Terms(np.concatenate(ids), np.concatenate(counts), np.cumsum([len(row) for row in ids], dtype=np.int64))


def term_ids(passage: Passage, text: int) -> NDArray[np.int64]:
    """The terms of a text of a row, each as often as it occurs. text: its number in the row."""
    groups = _pieces(passage), _characters(passage.text)
    return np.concatenate([_hashed(values, text * GROUPS_PER_TEXT + group) for group, values in enumerate(groups)])


def piece_terms(ids: NDArray[np.integer]) -> NDArray[np.int64]:
    """The terms that single pieces are in the first text of a row."""
    return _hashed(ids.astype(np.uint64) + np.uint64(1), 0)


def term_spans(passage: Passage) -> NDArray[np.int64]:
    """The characters [start, end) that each of `term_ids` covers, (n, 2); of two pieces, from the first to the last."""
    spans = passage.spans.astype(np.int64)
    pairs = np.stack([spans[:-1, 0], spans[1:, 1]], axis=1) if len(spans) > 1 else np.empty((0, 2), np.int64)
    starts, ends = _places(passage.text)
    characters = [
        np.stack([starts[: len(inner)][inner], ends[size - 1 :][inner]], axis=1)
        for size, (inner, _) in zip(_SIZES, _ngrams(passage.text), strict=False)
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
    """The n-grams of a text's words as numbers; of up to three characters exact, of four mixed."""
    return np.concatenate([np.empty(0, np.uint64), *(values[inner] for inner, values in _ngrams(text))])


def _ngrams(text: str) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.uint64]]]:
    """For each size, all n-grams of the words with a space around each, and which are inside one word."""
    words = text.lower().split()
    if not words:
        return
    padded = f" {' '.join(words)} "
    codes = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    spaces = np.cumsum(np.concatenate([[0], codes == ord(" ")]))
    for size in _SIZES:
        count = len(codes) - size + 1
        values = np.zeros(count, np.uint64)
        for place in range(size):
            values = (values * np.uint64(0x110001)) + codes[place : place + count]
        # Within a word: no space but at its ends.
        yield spaces[size - 1 : size - 1 + count] == spaces[1 : 1 + count], values


def _places(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the characters that `_ngrams` reads begin and end in the text; a space begins with the word after it, and
    ends with the word before it.
    """
    starts, ends = [], [0]
    for word in re.finditer(r"\S+", text):
        # Lower case may be longer: the rest is at the last character.
        own = [min(at, len(word[0]) - 1) for at in range(len(word[0].lower()))]
        starts += [word.start(), *(word.start() + at for at in own)]
        ends += [*(word.start() + at + 1 for at in own), word.end()]
    return np.array([*starts, len(text)], np.int64), np.array(ends, np.int64)
