"""The order of training rows, shuffled without holding it in memory, and mixed by the shares of their sources."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.pretraining.draws import mix64
from korbert.pretraining.shards import Shards
from korbert.seeds import derived_seed

_ROUNDS = 6  # of the permutation


class Mixture:
    """The order in which rows are trained on, epoch by epoch; an epoch has as many rows as the corpus.

    starts: (rows,) where each row begins in the shards. shares: source -> share of an epoch's rows, 0 to 1; the other
    sources share the rest in proportion to their rows. Each source is shuffled on its own and continues from epoch
    to epoch, so that all of its rows are seen once before any is seen twice. Without shares, every row is seen once.
    SettingsError for an unknown source, and for shares that do not add up.
    """

    def __init__(self, shards: Shards, starts: NDArray[np.int64], shares: Mapping[str, float], key: int) -> None:
        self._size = len(starts)
        self._key = key
        self._runs = shards.runs(starts) if shares else {}
        if not shares:
            return
        sizes = {shards.source_names[source]: int(ranks[-1]) for source, (_, ranks) in self._runs.items()}
        if unknown := sorted(shares.keys() - sizes.keys()):
            raise SettingsError(
                "pretrain.shares: no source {unknown} in the shards, only {sizes}",
                unknown=unknown[0],
                sizes=", ".join(sizes),
            )
        rest_share = 1 - sum(shares.values())
        rest_size = sum(size for name, size in sizes.items() if name not in shares)
        if rest_share < -1e-9 or (not rest_size and rest_share > 1e-9):
            raise SettingsError(
                "pretrain.shares: add up to {left:g}: at most 1, and 1 if all sources are named", left=1 - rest_share
            )
        source_shares = [shares.get(name, rest_share * size / max(rest_size, 1)) for name, size in sizes.items()]
        self._ends = np.round(np.cumsum(source_shares) * self._size).astype(np.int64)  # of each source in an epoch

    def rows(self, epoch: int, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows at these places of an epoch: the epoch of each row's source, and the number of each row."""
        shuffled = permute(places, self._size, derived_seed(self._key, epoch))
        if not self._runs:
            return np.full_like(shuffled, epoch), shuffled
        epochs = np.zeros_like(shuffled)
        numbers = np.zeros_like(shuffled)
        sources = self._ends.searchsorted(shuffled, side="right")
        begin = 0
        for index, (source, (firsts, ranks)) in enumerate(self._runs.items()):
            end = int(self._ends[index])
            of_source = sources == index
            size = int(ranks[-1])
            epochs[of_source], rank = np.divmod(epoch * (end - begin) + shuffled[of_source] - begin, size)
            for source_epoch in np.unique(epochs[of_source]).tolist():
                in_epoch = epochs[of_source] == source_epoch
                rank[in_epoch] = permute(rank[in_epoch], size, derived_seed(self._key, source, source_epoch))
            run = ranks.searchsorted(rank, side="right") - 1
            numbers[of_source] = firsts[run] + rank - ranks[run]
            begin = end
        return epochs, numbers


def permute(positions: NDArray[np.int64], size: int, key: int) -> NDArray[np.int64]:
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
    bits = np.uint64(half)
    low = np.uint64((1 << half) - 1)
    left = values >> bits
    right = values & low
    for key in keys:
        left, right = right, left ^ (mix64(right + key) & low)
    return (left << bits) | right
