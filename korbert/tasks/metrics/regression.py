"""Regression metrics. targets, predictions: (N,), finite."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.metrics.multilabel import micro_f1

_Numbers = NDArray[np.floating[Any]] | NDArray[np.integer[Any]]


def pearson(targets: _Numbers, predictions: _Numbers) -> float | None:
    """Linear correlation, -1 to 1 (KLUE-STS). None for fewer than two examples, or if one side is constant."""
    if len(targets) < 2 or np.ptp(targets) == 0 or np.ptp(predictions) == 0:
        return None  # undefined: scipy returns nan
    x, y = (side - side.mean() for side in (targets.astype(np.float64), predictions.astype(np.float64)))
    return float(np.clip((x / np.linalg.norm(x)) @ (y / np.linalg.norm(y)), -1, 1))


def spearman(targets: _Numbers, predictions: _Numbers) -> float | None:
    """Pearson correlation of the ranks, -1 to 1; ties get their mean rank. None as in `pearson`."""
    return pearson(_ranks(targets), _ranks(predictions))


def mean_absolute_error(targets: _Numbers, predictions: _Numbers) -> float:
    """In the unit of the targets; lower is better."""
    return float(np.abs(targets.astype(np.float64) - predictions).mean())


def f1_at_3(targets: _Numbers, predictions: _Numbers) -> float:
    """F1 of "at least 3", 0 if neither side reaches it.

    KLUE-STS counts pairs of 3 of 5 and more as paraphrases (KLUE-baseline,
    klue_baseline/metrics/functional.py, klue_sts_f1).
    """
    return micro_f1(targets >= 3, predictions >= 3)


def _ranks(numbers: _Numbers) -> NDArray[np.float64]:
    """(N,) float: the rank of each number, from 1; ties get their mean rank."""
    _, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])
