"""Calibration: whether predictions of a probability p are right in p of all cases.

Scores are log-odds of labels, (N, C), of rows that the model had not learned.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_BINS = 15  # of the probability
_LARGEST = 2.0  # natural logarithm of a scale, in either direction
_PRIOR = 2.0  # nats that a scale of e costs, so that few rows hardly change it

_Floats = NDArray[np.float64]


def scale_of(scores: _Floats, loss: Callable[[_Floats], float]) -> float:
    """What to multiply scores by for the least loss: the inverse of a temperature (Guo et al. 2017).

    The scale changes probabilities, but not which label is most probable. loss: the sum over the rows, in nats.
    """
    from scipy.optimize import minimize_scalar

    def penalized(logarithm: float) -> float:
        return loss(scores * np.exp(logarithm)) + _PRIOR * logarithm**2

    optimum = minimize_scalar(penalized, bounds=(-_LARGEST, _LARGEST), method="bounded")
    return float(np.exp(optimum.x))


def expected_calibration_error(probabilities: _Floats, outcomes: NDArray[np.bool_]) -> float:
    """Mean distance of probability and share of outcomes in bins of equal width (Naeini et al. 2015). (N,) both."""
    bins = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    distances = np.bincount(bins, probabilities, _BINS) - np.bincount(bins, outcomes, _BINS)
    return float(np.abs(distances).sum() / len(probabilities))
