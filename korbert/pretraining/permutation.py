"""A keyed permutation: shuffles an epoch without holding its order in memory."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from korbert.seeds import derived_seed

__all__ = ["permuted"]

_ROUNDS = 6


def permuted(positions: NDArray[np.int64], size: int, key: int) -> NDArray[np.int64]:
    """The images of `positions` under the permutation of 0..size-1 with this key. Needs memory for the result only.

    A Feistel network (Luby and Rackoff 1988) over the next even number of bits. Values outside are permuted again until
    they are inside (cycle walking, Black and Rogaway 2002), on average less than four times.
    """
    half = max(1, -(-(size - 1).bit_length() // 2))
    keys = [np.uint64(derived_seed(key, number)) for number in range(_ROUNDS)]
    walked = _feistel(positions.astype(np.uint64), half, keys)
    while (outside := np.flatnonzero(walked >= size)).size:
        walked[outside] = _feistel(walked[outside], half, keys)
    return walked.astype(np.int64)


def _feistel(values: NDArray[np.uint64], half: int, keys: Sequence[np.uint64]) -> NDArray[np.uint64]:
    bits, low = np.uint64(half), np.uint64((1 << half) - 1)
    left, right = values >> bits, values & low
    for key in keys:
        left, right = right, left ^ (_mixed(right + key) & low)
    return (left << bits) | right


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele et al. 2014): every input bit moves every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
