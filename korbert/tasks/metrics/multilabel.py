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


_TRIED = np.linspace(-4, 2, 61)  # log-odds: probabilities of 0.02 to 0.88
_ROWS_OF_A_LABEL = 100  # from so many rows on, a label's own threshold weighs more than the one for all labels


def thresholds(scores: NDArray[np.float64], targets: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Log-odds above which a text has a label, (C,): where F1 is best on these rows. scores: (N, C) log-odds.

    It averages the best threshold of each label and the best one for all labels together, weighted by the label's rows:
    a label of few rows says little alone.
    """
    rows = targets.sum(axis=0)
    hits = np.stack([((scores > threshold) & targets).sum(axis=0) for threshold in _TRIED])  # (thresholds, C)
    occurrences = np.stack([(scores > threshold).sum(axis=0) for threshold in _TRIED]) + rows
    for_all = _TRIED[np.argmax(hits.sum(axis=1) / np.maximum(1, occurrences.sum(axis=1)))]
    per_label = _TRIED[np.argmax(hits / np.maximum(1, occurrences), axis=0)]
    return np.asarray((rows * per_label + _ROWS_OF_A_LABEL * for_all) / (rows + _ROWS_OF_A_LABEL))
