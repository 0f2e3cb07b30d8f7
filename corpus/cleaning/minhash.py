"""MinHash signatures: near-duplicate texts are found without comparing all pairs.

MinHash (Broder 1997) over the set of a text's 3-grams of terms; a term is letters and digits in a row, so punctuation
and case do not count. The rows of a signature are grouped into bands (locality-sensitive hashing): texts of Jaccard
similarity s agree in at least one band with probability 1 - (1 - s^5)^25, which is 0.86 at s = 0.6, 0.99 at 0.7 and
0.9999 at 0.8.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.corpus.cleaning.features import Features
from korbert.corpus.cleaning.hashing import HashArray, IntArray

BANDS = 25
_ROWS = 5
SIGNATURE_BYTES = BANDS * _ROWS
_SHINGLE = 3
_BLOCK = 1 << 13  # shingles at once, so that the arrays of a row stay in the cache
_ONE_IN = 256  # unequal rows agree by chance, as one byte of each is kept

_generator = np.random.Generator(np.random.PCG64(20261121))
_FACTORS: HashArray = _generator.integers(0, 1 << 63, SIGNATURE_BYTES, np.uint64) * np.uint64(2) + np.uint64(1)
_SHIFTS: HashArray = _generator.integers(0, 1 << 63, SIGNATURE_BYTES, np.uint64)


class Signatures(NamedTuple):
    """texts: (N,) indices of the signed texts. bands: (N, 25) hashes of the bands. bytes: (N, 125), one of each row."""

    texts: IntArray
    bands: HashArray
    bytes: NDArray[np.uint8]


def signatures(features: Features, min_terms: int) -> Signatures:
    """Signatures of the texts of at least `min_terms` terms, and of at least the three of a 3-gram."""
    is_long = features.count(features.terms) >= max(min_terms, _SHINGLE)
    ((_, keys, first),) = features.term_ngrams(_SHINGLE)
    owners = features.terms.texts[first]
    is_signed = is_long[owners]
    signed_texts = np.flatnonzero(is_long)
    rows = _minima(keys[is_signed], np.searchsorted(owners[is_signed], signed_texts))
    bands: HashArray = np.full((len(signed_texts), BANDS), np.uint64(_SHINGLE))
    for row in range(_ROWS):
        bands = (bands ^ rows[:, row::_ROWS]) * _FACTORS[row]
        bands ^= bands >> np.uint64(31)
    return Signatures(signed_texts, bands, (rows & np.uint64(0xFF)).astype(np.uint8))


def similarity(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(N,) estimated Jaccard similarity of pairs of signatures, (N, 125). The standard error at 0.8 is 0.04."""
    agreement = (first == second).mean(axis=1)
    estimate: NDArray[np.float64] = np.maximum(0, (agreement - 1 / _ONE_IN) / (1 - 1 / _ONE_IN))
    return estimate


def _minima(keys: HashArray, starts: IntArray) -> HashArray:
    """(N, 125) minimum of each hash function over the keys of each text. starts: (N,) where a text's keys begin.

    Multiply-shift hashing (Dietzfelbinger 1996): the upper half of a key times an odd number, modulo 2^64.
    """
    minima: HashArray = np.full((len(starts), SIGNATURE_BYTES), np.iinfo(np.uint64).max)
    for begin in range(0, len(keys), _BLOCK):
        block = keys[begin : begin + _BLOCK]
        first, last = np.searchsorted(starts, (begin, begin + len(block) - 1), side="right") - (1, 1)
        starts_in_block = np.maximum(starts[first : last + 1] - begin, 0)
        for row, (factor, shift) in enumerate(zip(_FACTORS, _SHIFTS, strict=True)):
            values = np.minimum.reduceat(block * factor + shift, starts_in_block)
            np.minimum(minima[first : last + 1, row], values, out=minima[first : last + 1, row])
    return minima >> np.uint64(32)
