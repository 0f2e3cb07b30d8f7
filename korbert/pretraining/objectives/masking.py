"""Masking (MLM): which pieces are predicted, and what replaces them."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from korbert.pretraining.draws import Draws
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


def units_of(boundaries: NDArray[np.integer], maskable: NDArray[np.bool_], unit: str) -> NDArray[np.int64]:
    """The unit (0, 1, ...) of each maskable piece, ascending. boundaries, maskable: (T,).

    A unit never extends over a special token.
    """
    begins = boundaries >= _LEVELS[unit]
    begins[1:] |= ~maskable[:-1]
    return begins[maskable].cumsum() - 1


def choose_positions(
    units: NDArray[np.int64], counts: NDArray[np.int64], rate: float, draws: Draws
) -> NDArray[np.bool_]:
    """Pieces to predict, by whole units: (N,) bool for the N pieces of R rows, one after the other, with their `units`.
    counts: (R,) pieces of each row; rate x count are True on average.

    The units of a row are taken in random order until the next one would exceed the budget of rate x count pieces. That
    one is taken with the probability that makes the expectation exact: a hard limit would mask less in short rows and
    long words.
    """
    sizes = np.bincount(units)
    row_of = np.repeat(np.arange(len(counts)), counts)[np.flatnonzero(np.diff(units, prepend=-1))]  # of each unit
    order = np.lexsort((draws.uniform("order", np.bincount(row_of, minlength=len(counts))), row_of))  # by row
    ordered = sizes[order]
    preceding = (ordered.cumsum() - ordered) - (counts.cumsum() - counts)[row_of]  # pieces before a unit in its row
    budget = (rate * counts)[row_of] - preceding
    is_chosen = np.zeros(len(sizes), dtype=bool)
    is_chosen[order] = draws.uniform("last")[row_of] * ordered < budget
    return is_chosen[units]


def mask_pieces(
    input_ids: NDArray[np.int64],
    chosen: NDArray[np.intp],
    counts: NDArray[np.int64],
    settings: MaskingSettings,
    ids: SpecialIds,
    draws: Draws,
) -> NDArray[np.int64]:
    """A copy of input_ids (T,) with [MASK], a random or the same piece at the `chosen` positions, by the shares.

    input_ids: of R rows, one after the other. counts: (R,) how many positions of each are chosen.
    """
    hidden = input_ids.copy()
    lot = draws.uniform("mask", counts)
    hidden[chosen[lot < settings.mask_share]] = ids.mask
    replaced = (lot >= settings.mask_share) & (lot < settings.mask_share + settings.random_share)
    offsets = draws.uniform("piece", counts)[replaced] * (ids.vocab_size - ids.first_piece)
    hidden[chosen[replaced]] = ids.first_piece + offsets.astype(np.int64)
    return hidden
