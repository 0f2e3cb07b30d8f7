"""Metrics for several labels per text. targets, predictions: (N, C) bool, row i the labels of text i, N at least 1."""

import numpy as np
from numpy.typing import NDArray


def micro_f1(targets: NDArray[np.bool_], predictions: NDArray[np.bool_]) -> float:
    """2 TP / (2 TP + FP + FN), each summed over texts and labels. 0 if there is no label at all."""
    occurrences = int(targets.sum() + predictions.sum())
    return 2 * int((targets & predictions).sum()) / occurrences if occurrences else 0.0


def macro_f1(targets: NDArray[np.bool_], predictions: NDArray[np.bool_]) -> float:
    """Unweighted mean over all C labels of their F1, 2 TP / (2 TP + FP + FN).

    A label that never occurs counts as 0, as in scikit-learn's f1_score of such arrays; with one label per text it is
    left out (classification.macro_f1), as there.
    """
    occurrences = targets.sum(axis=0) + predictions.sum(axis=0)
    return float((2 * (targets & predictions).sum(axis=0) / np.maximum(occurrences, 1)).mean())


def exact_match(targets: NDArray[np.bool_], predictions: NDArray[np.bool_]) -> float:
    """Share of texts whose label set is exactly right."""
    return float((targets == predictions).all(axis=1).mean())
