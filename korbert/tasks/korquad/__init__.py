"""KorQuAD 1.0: its files, the official scores, why answers are missed, and what no reader could reach."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.korquad.data import (
        Answer,
        AnswerPart,
        Dataset,
        Question,
        join,
        parse,
        read,
        read_json,
        read_predictions,
        split_by_article,
    )
    from korbert.tasks.korquad.metrics import exact_match, f1, score
    from korbert.tasks.korquad.settings import KorquadSettings

__all__ = [
    "Answer",
    "AnswerPart",
    "Dataset",
    "KorquadSettings",
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
        "Answer": "data",
        "AnswerPart": "data",
        "Dataset": "data",
        "KorquadSettings": "settings",
        "Question": "data",
        "exact_match": "metrics",
        "f1": "metrics",
        "join": "data",
        "parse": "data",
        "read": "data",
        "read_json": "data",
        "read_predictions": "data",
        "score": "metrics",
        "split_by_article": "data",
    },
)
