"""Viterbi decoding: the most probable tag sequence that BIO allows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.token_classification.bio import is_bio, split_tag


class Transitions:
    """Which label may follow which: I-X only after B-X or I-X, all others after anything.

    start: (C,) bool, labels that may come first. allowed: (C, C) bool, from the row's label to the column's.
    Labels other than BIO tags, such as parts of speech, may come in any order; so may I-X if there is no B-X, as in
    models that use B- only between adjacent spans (IOB1).
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.start = np.ones(len(labels), dtype=bool)
        self.allowed = np.ones((len(labels), len(labels)), dtype=bool)
        if is_bio(labels):
            parts = [split_tag(label) for label in labels]
            for place, (prefix, label) in enumerate(parts):
                if prefix == "I" and ("B", label) in parts:
                    self.start[place] = False
                    self.allowed[:, place] = [other == label for _, other in parts]

    def allow(self, path: NDArray[np.int64]) -> bool:
        """Whether the sequence of labels (N,) is legal."""
        return not len(path) or bool(self.start[path[0]] and self.allowed[path[:-1], path[1:]].all())


def best_path(scores: NDArray[np.floating], transitions: Transitions) -> NDArray[np.int64]:
    """The legal sequence with the highest sum of scores: (N,) int64 label ids. Exact (Viterbi 1967).

    scores: (N, C) log probabilities of each unit's labels. Ties are broken arbitrarily.
    """
    path = scores.argmax(axis=1) if len(scores) else np.empty(0, dtype=np.int64)
    if transitions.allow(path):
        return path.astype(np.int64)  # already legal, so optimal
    barred = np.where(transitions.allowed, 0.0, -np.inf)
    best = np.where(
        transitions.start, scores[0].astype(np.float64), -np.inf
    )  # (C,) score of the best path to each label
    before = np.zeros(scores.shape, dtype=np.int64)  # previous label on that path
    for place in range(1, len(scores)):
        sums = best[:, None] + barred  # (C, C)
        before[place] = sums.argmax(axis=0)
        best = sums.max(axis=0) + scores[place]
    path[-1] = best.argmax()
    for place in range(len(scores) - 1, 0, -1):
        path[place - 1] = before[place, path[place]]
    return path.astype(np.int64)
