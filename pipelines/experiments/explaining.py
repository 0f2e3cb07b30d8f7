"""What the report of a linear model shows: the morphemes that speak most for each label, and rows like wrong ones.

They hold texts of the user, so they are kept with the artifact, and not in the model.
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
    """Label -> the morphemes of training texts that speak most for it, by their weights in a model of words."""
    surfaces: dict[int, str] = {}
    for passage in passages:
        for piece, (start, end) in zip(passage.ids.tolist(), passage.spans.tolist(), strict=True):
            surfaces.setdefault(piece, passage.text[start:end])
    terms = torch.from_numpy(piece_terms(np.array([*surfaces], np.int64))).to(model.terms.device)
    ones = torch.ones(len(terms), device=terms.device)
    known = model.known_terms(terms, ones, torch.arange(len(terms), device=terms.device), len(terms))
    weights = (model.frequencies[known.places, None] * model.words[known.places]).cpu().numpy()
    names = np.array([*surfaces.values()], dtype=object)[known.used.cpu().numpy()]
    found = {}
    for number, label in enumerate(task.labels):
        own = margins_of(weights, number, several=task.several)
        best = np.argsort(-own)[:_MOST_MORPHEMES]
        found[label] = list(dict.fromkeys(names[best[own[best] > 0]]))
    return found


def rows_like_wrong_ones(
    task: Classification, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction], vectors: NDArray[np.float32],
    train: Sequence[TaskRow], known: NDArray[np.float32],
) -> JsonObject:  # fmt: skip
    """Number of a wrong row -> the nearest training rows, [texts, label] each. vectors, known: (N, D) of both."""
    surest = np.array([max(prediction["probabilities"].values()) for prediction in predictions])
    wrong = np.flatnonzero(task.row_scores(rows, predictions) == 0)
    wrong = wrong[np.argsort(-surest[wrong], kind="stable")][:_MOST_WRONG]
    found: dict[str, list[Any]] = {}
    for number in wrong.tolist():
        texts = task.texts(rows[number])
        order = np.argsort(-(known @ vectors[number]), kind="stable")[: _NEAREST + 10]  # it may stand there itself
        near = [train[place] for place in order.tolist() if task.texts(train[place]) != texts][:_NEAREST]
        found[str(number)] = [[task.texts(row), task.target(row)] for row in near]
    return found
