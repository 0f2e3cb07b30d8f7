"""Calibration: whether predictions of a probability p are right in p of all cases, and from which p on to trust them.

Scores are log-odds of labels, (N, C), of rows that the model had not learned.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

PRECISIONS = (80, 85, 90, 95, 98, 99)  # in percent, that a user may ask for
_BINS = 15  # of the probability
_LARGEST = 2.0  # natural logarithm of a scale, in either direction
_PRIOR = 2.0  # nats that a scale of e costs, so that few rows hardly change it
_WRONG = 2  # more rows that count as wrong, as few rows may all be right by chance

_Floats = NDArray[np.float64]


def scale_of(scores: _Floats, loss: Callable[[_Floats], float]) -> float:
    """What to multiply scores by for the least loss: the inverse of a temperature (Guo et al. 2017).

    It changes probabilities, but not which label is the most probable one. loss: the sum over the rows, in nats.
    """
    from scipy.optimize import minimize_scalar

    def penalized(logarithm: float) -> float:
        return loss(scores * np.exp(logarithm)) + _PRIOR * logarithm**2

    found = minimize_scalar(penalized, bounds=(-_LARGEST, _LARGEST), method="bounded")
    return float(np.exp(found.x))


def expected_calibration_error(probabilities: _Floats, outcomes: NDArray[np.bool_]) -> float:
    """Mean distance of probability and share of outcomes in bins of equal width (Naeini et al. 2015). (N,) both."""
    bins = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    distances = np.bincount(bins, probabilities, _BINS) - np.bincount(bins, outcomes, _BINS)
    return float(np.abs(distances).sum() / len(probabilities))


def least_probability(probabilities: _Floats, right: NDArray[np.bool_], precision: float) -> float | None:
    """The probability from which on predictions are right often enough; None if there is none. (N,) both.

    It is at least the precision, and of the predictions with as much, with two more that count as wrong, at least that
    share is right.
    """
    order = np.argsort(-probabilities)
    falling = probabilities[order]
    shares = np.cumsum(right[order]) / (np.arange(1, len(order) + 1) + _WRONG)
    last = np.diff(falling, append=-1) < 0  # of those with the same probability
    enough = falling[last & (shares >= precision)]
    return max(precision, float(enough[-1])) if len(enough) else None
