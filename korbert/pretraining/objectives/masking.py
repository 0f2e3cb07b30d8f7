"""Masking (MLM): which pieces are predicted, and what replaces them."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from korbert.pretraining.objective_settings import MaskingSettings
from korbert.tokenization import FIRST_PIECE, AnyTokenizer

_LEVELS = {"piece": 0, "morpheme": 1, "eojeol": 2}  # a unit begins at this boundary level or a higher one


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """The ids of a tokenizer that rows need. From first_piece on, ids are neither special, reserved nor bytes."""

    cls: int
    sep: int
    mask: int
    first_piece: int
    vocab_size: int

    @classmethod
    def of(cls, tokenizer: AnyTokenizer) -> Self:
        return cls(tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id, FIRST_PIECE, tokenizer.vocab_size)


def units_of(boundaries: NDArray[np.uint8], maskable: NDArray[np.bool_], unit: str) -> NDArray[np.int64]:
    """The unit (0, 1, ...) of each maskable piece, ascending. boundaries, maskable: (T,).

    A unit never extends over a special token.
    """
    begins = boundaries >= _LEVELS[unit]
    begins[1:] |= ~maskable[:-1]
    return begins[maskable].cumsum() - 1


def choose_positions(units: NDArray[np.int64], rate: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Pieces to predict, by whole units: (N,) bool for N pieces with their `units`; rate x N are True on average.

    Units are taken in random order until the next one would exceed the budget of rate x N pieces. That one is taken
    with the probability that makes the expectation exact: a hard limit would mask less in short rows and long words.
    """
    sizes = np.bincount(units)
    order = rng.permutation(len(sizes))
    in_turn = sizes[order]
    left = rate * len(units) - (in_turn.cumsum() - in_turn)  # of the budget, before each unit
    taken = np.zeros(len(sizes), dtype=bool)
    taken[order] = rng.random() * in_turn < left
    return taken[units]


def mask_pieces(
    input_ids: NDArray[np.int64],
    chosen: NDArray[np.intp],
    settings: MaskingSettings,
    ids: SpecialIds,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """A copy of input_ids (T,) with [MASK], a random or the same piece at the `chosen` positions, by the shares."""
    hidden = input_ids.copy()
    lot = rng.random(len(chosen))
    hidden[chosen[lot < settings.mask_share]] = ids.mask
    replaced = chosen[(lot >= settings.mask_share) & (lot < settings.mask_share + settings.random_share)]
    if replaced.size:
        hidden[replaced] = rng.integers(ids.first_piece, ids.vocab_size, size=replaced.size)
    return hidden
