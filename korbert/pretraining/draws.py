"""Random numbers for many rows at once; each depends only on row and purpose."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from korbert.seeds import derived_seed

_STRIDE = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64: 2^64 divided by the golden ratio


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele et al. 2014): each input bit affects each output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class Draws:
    """Random numbers for R rows, one SplitMix64 stream per row and purpose. keys: (R,)."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        self._keys = keys

    @classmethod
    def of(cls, key: int, epochs: NDArray[np.int64], numbers: NDArray[np.int64]) -> Self:
        """The draws of R examples. epochs, numbers: (R,), the epoch and the number of each example."""
        distinct, places = np.unique(epochs, return_inverse=True)
        bases = np.array([derived_seed(key, epoch) for epoch in distinct.tolist()], dtype=np.uint64)
        return cls(mix64(bases[places] + numbers.astype(np.uint64) * _STRIDE))

    def rows(self, which: NDArray[np.int64]) -> Self:
        """The draws of the rows with these indices."""
        return type(self)(self._keys[which])

    def uniform(self, purpose: str, counts: NDArray[np.int64] | None = None, *, skip: int = 0) -> NDArray[np.float64]:
        """Uniform in [0, 1): (R,), one per row; with counts (R,): counts[r] for row r, concatenated.

        skip: how many of each stream to skip.
        """
        states = mix64(self._keys + np.uint64(derived_seed(purpose)))
        places = np.full(len(states), skip, dtype=np.uint64)
        if counts is not None:
            places = ranges(np.full(len(counts), skip), counts).astype(np.uint64)
            states = np.repeat(states, counts)
        return (mix64(states + (places + np.uint64(1)) * _STRIDE) >> np.uint64(11)) * np.float64(2.0**-53)


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """np.arange(start, start + length) of each pair, concatenated: (lengths.sum(),)."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
