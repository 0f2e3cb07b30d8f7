"""The result of a baseline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Baseline", "Floats"]

Floats = NDArray[np.float64]
Predictions = TypeVar("Predictions")


@dataclass(frozen=True)
class Baseline(Generic[Predictions]):
    """Predictions of a baseline for the validation rows and the test rows, which may be none.

    | kind | predictions, float64 |
    |---|---|
    | labels | (N, labels): probabilities that sum to 1 |
    | several labels per text | (N, labels): the probability of each; predicted above 0.5 |
    | scores | (N,) |
    | choices | (N, maximum choices): probabilities that sum to 1, 0 for choices that a row lacks |
    | tags | a list of tags for each row |

    chosen: the C of logistic regression or the alpha of ridge with the best validation score, the smallest among ties;
    None if there is nothing to choose. trials: value -> validation score, None if undefined.
    """

    validation: Predictions
    test: Predictions
    chosen: float | None = None
    trials: Mapping[float, float | None] = field(default_factory=dict)
