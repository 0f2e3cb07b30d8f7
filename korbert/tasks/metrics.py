"""Scores of predicted labels, for any number of labels C, all computed from the confusion matrix."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

__all__ = ["METRICS", "Metric", "accuracy", "confusion", "macro_f1", "measures"]

Metric = Literal["accuracy", "macro_f1"]


def confusion(labels: NDArray[np.int64], predictions: NDArray[np.int64], num_labels: int) -> NDArray[np.int64]:
    """(C, C) int64: examples with the row's label that were predicted as the column's."""
    counts = np.bincount(labels * num_labels + predictions, minlength=num_labels**2)
    return counts.reshape(num_labels, num_labels).astype(np.int64)


def accuracy(counts: NDArray[np.int64]) -> float:
    """Share of the examples on the diagonal. counts: (C, C), at least one example."""
    return int(counts.trace()) / int(counts.sum())


def macro_f1(counts: NDArray[np.int64]) -> float:
    """Unweighted mean of the labels' F1, each 2 TP / (2 TP + FP + FN). counts: (C, C), at least one example.

    A label that no example has and none was given is left out, as scikit-learn's f1_score leaves it out.
    """
    occurrences = counts.sum(axis=0) + counts.sum(axis=1)  # (C,) 2 TP + FP + FN
    present = occurrences > 0
    return float((2 * counts.diagonal()[present] / occurrences[present]).mean())


METRICS: Mapping[Metric, Callable[[NDArray[np.int64]], float]] = {"accuracy": accuracy, "macro_f1": macro_f1}
assert tuple(METRICS) == get_args(Metric)


def measures(counts: NDArray[np.int64], metrics: Sequence[Metric]) -> dict[str, float | int | None]:
    """Each metric and the `count` of examples; with no example every metric is None.

    `standard_error` follows accuracy: the binomial one, sqrt(p (1 - p) / n).
    """
    count = int(counts.sum())
    scores: dict[str, float | int | None] = {}
    for name in metrics:
        value = scores[name] = METRICS[name](counts) if count else None
        if name == "accuracy":
            scores["standard_error"] = None if value is None else math.sqrt(value * (1 - value) / count)
    return {**scores, "count": count}
