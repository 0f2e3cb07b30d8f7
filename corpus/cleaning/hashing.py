"""64-bit hashes of many text spans at once: lines, words, terms and their n-grams, and tests for repetition."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
HashArray = NDArray[np.uint64]
IntArray = NDArray[np.int64]

NGRAM_SEED = np.uint64(0x9E3779B97F4A7C15)  # the hash of an n-gram before its first term
_CHAR_FACTOR = NGRAM_SEED
_MIX_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_BASE = 0xB5297A4D2C7E9D6B


def hashes_of(codes: NDArray[np.uint32], starts: IntArray, ends: IntArray) -> HashArray:
    """The hash of each span of characters, independent of its position. starts, ends: indices into codes, (N,).

    A polynomial hash: mixed characters times powers of an odd number, summed modulo 2^64. Any span's hash is then the
    difference of two prefix sums.
    """
    mixed_codes = (codes.astype(np.uint64) + np.uint64(1)) * _CHAR_FACTOR
    mixed_codes ^= mixed_codes >> np.uint64(31)
    powers, inverses = _powers(1 << len(codes).bit_length())
    sums = np.append(np.uint64(0), np.cumsum(mixed_codes * powers[1 : len(codes) + 1]))
    hashes: HashArray = (sums[ends] - sums[starts]) * inverses[starts]
    hashes ^= (ends - starts).astype(np.uint64)
    hashes = (hashes ^ (hashes >> np.uint64(32))) * _MIX_FACTOR
    hashes ^= hashes >> np.uint64(29)
    return hashes


@lru_cache(4)
def _powers(size: int) -> tuple[HashArray, HashArray]:
    """The first powers of _BASE and of its inverse modulo 2^64."""
    tables = []
    for base in (_BASE, pow(_BASE, -1, 1 << 64)):
        table = np.full(size, base, np.uint64)
        table[0] = 1
        tables.append(np.multiply.accumulate(table))
    return tables[0], tables[1]


def extend_hashes(keys: HashArray, hashes: HashArray) -> HashArray:
    """Extends each key by one hash, as the hash of an n-gram grows by a term."""
    keys = (keys ^ hashes) * _MIX_FACTOR
    keys ^= keys >> np.uint64(29)
    return keys


def keyed_by_text(texts: IntArray, keys: HashArray) -> HashArray:
    """Returns the keys, changed so that equal keys of different texts differ. texts: (N,) the text of each key."""
    return keys ^ (texts.astype(np.uint64) * NGRAM_SEED)


def is_in(keys: HashArray, held: HashArray) -> BoolArray:
    """(N,) which keys are in `held`, which is sorted."""
    if not len(held):
        return np.zeros(len(keys), bool)
    present: BoolArray = held[np.minimum(np.searchsorted(held, keys), len(held) - 1)] == keys
    return present


def is_repeated(keys: HashArray) -> BoolArray:
    """(N,) which keys occur more than once."""
    order = np.sort(keys)
    return is_in(keys, np.unique(order[1:][order[1:] == order[:-1]]))


def repeats(keys: HashArray, texts: IntArray) -> BoolArray:
    """(N,) which keys occurred earlier in their text."""
    _, first = np.unique(keyed_by_text(texts, keys), return_index=True)
    is_repeat = np.ones(len(keys), bool)
    is_repeat[first] = False
    return is_repeat
