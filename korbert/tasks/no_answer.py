"""Unanswerable questions: the no-answer threshold of a reader, and scores of both halves.

A reader compares its best answer with no answer (reading.Found). The threshold is the margin by which no answer must
score higher; it is chosen on validation questions and stored with the model:

    threshold = choose_threshold(valid, Reader(model, tokenizer, settings).search(pairs), metrics).value
    settings = settings.model_copy(update={"threshold": threshold})  # of a reader with unanswerable = true
"""

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from korbert.tasks.metrics.reading import Threshold, answer_scores, best_threshold, unanswerable_scores
from korbert.tasks.questions import AnswerMetrics, Dataset
from korbert.tasks.reading import Found

__all__ = ["choose_threshold", "score_halves"]

_logger = logging.getLogger(__name__)


def choose_threshold(dataset: Dataset, found: Sequence[Found], metrics: AnswerMetrics) -> Threshold:
    """The threshold with the highest mean F1 (or its stand-in in `metrics`), and that mean, 0 to 1.

    dataset: validation questions, at least one. found: the result of `Reader.search` for each.
    """
    best = [next(iter(one.candidates), one.none)["text"] for one in found]
    _, f1 = answer_scores(best, _right(dataset), metrics)
    return best_threshold(f1, _has_answer(dataset), np.array([one.no_answer for one in found]))


def score_halves(
    dataset: Dataset, predictions: Mapping[str, str], metrics: AnswerMetrics
) -> dict[str, dict[str, float | int | None]]:
    """`exact_match`, `f1` and `count` of "all" questions, and of those with ("has_answer") or without ("no_answer").

    Scores are in percent, as in SQuAD 2.0's evaluate-v2.0.py; None if there is no such question. dataset: at least one
    question. predictions: question id -> answer, empty for none. A question without a prediction counts as wrong, with
    a warning; that script leaves it out of the means.
    """
    ids = [question.id for question in dataset.questions]
    asked = np.array([id in predictions for id in ids])
    if not asked.all():
        _logger.warning("%d of %d questions have no prediction and score 0", (~asked).sum(), len(ids))
    exact, f1 = answer_scores([predictions.get(id, "") for id in ids], _right(dataset), metrics)
    return unanswerable_scores(100.0 * exact * asked, 100.0 * f1 * asked, _has_answer(dataset))


def _right(dataset: Dataset) -> list[list[str]]:
    return [[answer.text for answer in question.answers] for question in dataset.questions]


def _has_answer(dataset: Dataset) -> np.ndarray:
    return np.array([bool(question.answers) for question in dataset.questions])
