"""Predicts what is most frequent in training, for every row. Needs at least one training row.

validation, test: the number of rows to predict, unless said otherwise.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.baselines.result import Baseline, Floats

__all__ = ["label_shares", "majority_place", "majority_tag", "mean_score"]


def label_shares(targets: NDArray[np.bool_], validation: int, test: int) -> Baseline[Floats]:
    """Each label's share of the training rows, so that the most probable label is the most frequent one.

    targets: (N, labels) bool, one or more labels per row; for single labels, `np.eye(num_labels, dtype=bool)[labels]`.
    """
    return _same(targets.mean(axis=0), validation, test)


def mean_score(scores: NDArray[np.floating[Any]], validation: int, test: int) -> Baseline[Floats]:
    """The mean of the training scores, (N,). Its correlation with anything is undefined."""
    return _same(np.float64(scores.mean()), validation, test)


def majority_place(places: NDArray[np.int64], validation: Sequence[int], test: Sequence[int]) -> Baseline[Floats]:
    """How often each place was right in training, so that the predicted choice is at the place most often right.

    places: (N,) from 0. validation, test: the number of choices of each row. A row with fewer choices is normalized
    over its own places; all are equally likely if none of them was ever right.
    """
    width = max(chain([int(places.max()) + 1], validation, test))
    frequencies = np.bincount(places, minlength=width).astype(np.float64)
    shares = np.zeros((width + 1, width))  # by number of choices
    for count in range(1, width + 1):
        first = frequencies[:count]
        shares[count, :count] = first / first.sum() if first.any() else 1 / count
    return Baseline(shares[np.array(validation, np.int64)], shares[np.array(test, np.int64)])


def majority_tag(
    tags: Iterable[Sequence[str]], validation: Sequence[int], test: Sequence[int]
) -> Baseline[list[list[str]]]:
    """The most frequent tag, the first by name among ties. validation, test: the number of tags of each row."""
    frequencies = Counter(chain.from_iterable(tags))
    most = max(sorted(frequencies), key=frequencies.__getitem__)
    return Baseline([[most] * count for count in validation], [[most] * count for count in test])


def _same(row: Floats | np.float64, validation: int, test: int) -> Baseline[Floats]:
    rows = np.repeat(np.asarray(row)[None], validation + test, axis=0)
    return Baseline(rows[:validation], rows[validation:])
