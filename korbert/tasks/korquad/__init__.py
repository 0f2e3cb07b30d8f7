"""KorQuAD 1.0, a reading task.

1. data.py: reads questions, contexts and gold answers of official files (../questions.py); errors name the place.
2. oracle.py: the upper bound on scores set by a tokenizer's pieces.
3. metrics.py: the official scores of predictions.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach
from korbert.tasks.questions import Answer, Dataset, Question, join, split_by_article

if TYPE_CHECKING:
    from korbert.tasks.korquad.data import AnswerPart, parse, read, read_json, read_predictions
    from korbert.tasks.korquad.metrics import exact_match, f1, score

__all__ = [
    "Answer",
    "AnswerPart",
    "Dataset",
    "Question",
    "exact_match",
    "f1",
    "join",
    "parse",
    "read",
    "read_json",
    "read_predictions",
    "score",
    "split_by_article",
]

__getattr__ = attach(
    __name__,
    {
        "AnswerPart": "data",
        "exact_match": "metrics",
        "f1": "metrics",
        "parse": "data",
        "read": "data",
        "read_json": "data",
        "read_predictions": "data",
        "score": "metrics",
    },
)
