"""Metrics for one label per text and any number of labels C, from the confusion matrix."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray


def confusion(
    labels: NDArray[np.int64], predictions: NDArray[np.int64], num_labels: int,
    occurrences: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:  # fmt: skip
    """Confusion matrix, (C, C) int64: examples of the row's label that were predicted as the column's.

    labels, predictions: (N,). occurrences: (N,), the count of each pair; 1 if left out.
    """
    counts = np.bincount(labels * num_labels + predictions, occurrences, minlength=num_labels**2)
    return counts.reshape(num_labels, num_labels).astype(np.int64)


def accuracy(counts: NDArray[np.int64]) -> float:
    """Share of the examples on the diagonal. counts: (C, C), at least one example."""
    return int(counts.trace()) / int(counts.sum())


def macro_f1(counts: NDArray[np.int64]) -> float:
    """Unweighted mean of the labels' F1, each 2 TP / (2 TP + FP + FN). counts: (C, C), at least one example.

    A label that no example has and that is never predicted is left out, as in scikit-learn's f1_score.
    """
    occurrences = counts.sum(axis=0) + counts.sum(axis=1)  # (C,) 2 TP + FP + FN
    present = occurrences > 0
    return float((2 * counts.diagonal()[present] / occurrences[present]).mean())


def micro_f1(counts: NDArray[np.int64], without: int | None = None) -> float:
    """2 TP / (2 TP + FP + FN), each summed over the labels; over all labels it equals accuracy. counts: (C, C).

    without: a label to leave out, such as no_relation in KLUE-RE (KLUE-baseline, metrics/functional.py,
    klue_re_micro_f1). 0 if neither labels nor predictions contain any other.
    """
    summed = np.arange(len(counts)) != without
    occurrences = int(counts.sum(axis=0)[summed].sum() + counts.sum(axis=1)[summed].sum())
    return 2 * int(counts.diagonal()[summed].sum()) / occurrences if occurrences else 0.0


def f1_of(counts: NDArray[np.int64], label: int = 1) -> float:
    """F1 of one label, 2 TP / (2 TP + FP + FN), as GLUE scores MRPC (Wang et al. 2018). 0 if it never occurs."""
    occurrences = int(counts[label].sum() + counts[:, label].sum())
    return 2 * int(counts[label, label]) / occurrences if occurrences else 0.0


METRICS: Mapping[str, Callable[[NDArray[np.int64]], float]] = {
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    "micro_f1": micro_f1,
}
