"""Explanations in the report of a linear model: the strongest morphemes of each label, and rows like wrong ones.

Both hold texts of the user, so they are kept with the artifact, and not in the model.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.modeling import LinearModel
from korbert.system import JsonObject
from korbert.tasks.files import TaskRow
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.kind import TaskPrediction
from korbert.tasks.passages import Passage
from korbert.tasks.reasons import margins_of
from korbert.tasks.terms import piece_terms

_MOST_MORPHEMES = 100  # of each label
_MOST_WRONG = 100  # rows that are explained, the surest first
_NEAREST = 3


def strongest_morphemes(
    model: LinearModel, task: Classification, passages: Iterable[Passage]
) -> Mapping[str, list[str]]:
    """Returns label -> the morphemes of training texts that speak most for it, by their weights in a model of words."""
    surfaces: dict[int, str] = {}
    for passage in passages:
        for piece, (start, end) in zip(passage.ids.tolist(), passage.spans.tolist(), strict=True):
            surfaces.setdefault(piece, passage.text[start:end])
    terms = torch.from_numpy(piece_terms(np.array([*surfaces], np.int64))).to(model.terms.device)
    ones = torch.ones(len(terms), device=terms.device)
    known_terms = model.known_terms(terms, ones, torch.arange(len(terms), device=terms.device), len(terms))
    weights = (model.frequencies[known_terms.places, None] * model.words[known_terms.places]).cpu().numpy()
    names = np.array([*surfaces.values()], dtype=object)[known_terms.used.cpu().numpy()]
    morphemes = {}
    for number, label in enumerate(task.labels):
        margins = margins_of(weights, number, several=task.several)
        best = np.argsort(-margins)[:_MOST_MORPHEMES]
        morphemes[label] = list(dict.fromkeys(names[best[margins[best] > 0]]))
    return morphemes


def rows_like_wrong_ones(
    task: Classification, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction], vectors: NDArray[np.float32],
    train: Sequence[TaskRow], known: NDArray[np.float32],
) -> JsonObject:  # fmt: skip
    """Returns number of a wrongly predicted row -> its nearest training rows, [texts, label] each.

    vectors: (N, D), of `rows`. known: (M, D), of `train`.
    """
    surest = np.array([max(prediction["probabilities"].values()) for prediction in predictions])
    wrong = np.flatnonzero(task.row_scores(rows, predictions) == 0)
    wrong = wrong[np.argsort(-surest[wrong], kind="stable")][:_MOST_WRONG]
    neighbours: dict[str, list[Any]] = {}
    for number in wrong.tolist():
        texts = task.texts(rows[number])
        # Ten more than needed: the row itself, and copies of it, may be among the training rows.
        order = np.argsort(-(known @ vectors[number]), kind="stable")[: _NEAREST + 10]
        nearest = [train[place] for place in order.tolist() if task.texts(train[place]) != texts][:_NEAREST]
        neighbours[str(number)] = [[task.texts(row), task.target(row)] for row in nearest]
    return neighbours
