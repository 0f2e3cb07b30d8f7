"""Which pieces are to be guessed, and what stands in their place (MLM)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from korbert.pretraining.settings import MaskingSettings

__all__ = ["SpecialIds", "choose_positions", "hide", "units_of"]

_LEVELS = {"piece": 0, "morpheme": 1, "eojeol": 2}  # the boundary level at which a unit begins, or a higher one


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """What row making has to know of a tokenizer. Ids from first_piece on are neither special, reserved nor bytes."""

    pad: int
    cls: int
    sep: int
    mask: int
    first_piece: int
    vocab_size: int


def units_of(boundaries: NDArray[np.uint8], maskable: NDArray[np.bool_], unit: str) -> NDArray[np.int64]:
    """The number of the unit that each maskable piece belongs to, 0, 1, ..: one entry a maskable piece, ascending.

    boundaries, maskable: (T,). A unit ends at the latest before a special token.
    """
    begins = boundaries >= _LEVELS[unit]
    begins[1:] |= ~maskable[:-1]
    return np.cumsum(begins[maskable]) - 1


def choose_positions(units: NDArray[np.int64], rate: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Pieces to guess, taken by whole units: (N,) bool, for N pieces with their `units`; on average rate x N are True.

    Units are taken in random order until the next would pass the budget of rate x N pieces; that one is taken with the
    probability that makes the expected number exact, for a limit would lower the rate of short rows and long words.
    """
    sizes = np.bincount(units)
    order = rng.permutation(len(sizes))
    reached = np.cumsum(sizes[order])
    left = rate * len(units) - (reached - sizes[order])  # of the budget, before each unit
    taken = np.zeros(len(sizes), dtype=bool)
    taken[order] = rng.random() * sizes[order] < left
    return taken[units]


def hide(
    input_ids: NDArray[np.int64],
    chosen: NDArray[np.intp],
    settings: MaskingSettings,
    ids: SpecialIds,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """A copy of input_ids (T,): at the `chosen` positions [MASK], another piece, or what was there, by the shares."""
    hidden = input_ids.copy()
    lot = rng.random(len(chosen))
    masked = lot < settings.mask_share
    replaced = ~masked & (lot < settings.mask_share + settings.random_share)
    hidden[chosen[masked]] = ids.mask
    hidden[chosen[replaced]] = rng.integers(ids.first_piece, ids.vocab_size, size=int(replaced.sum()))
    return hidden
