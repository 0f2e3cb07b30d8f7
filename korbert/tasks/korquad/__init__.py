"""KorQuAD 1.0, a reading task.

1. data.py: reads questions, contexts and gold answers of official files, and predictions.
2. oracle.py: the upper bound on scores set by a tokenizer's pieces.
3. metrics.py: the official scores of predictions.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.korquad.data import read, read_predictions
    from korbert.tasks.korquad.metrics import exact_match, f1, score

__all__ = ["exact_match", "f1", "read", "read_predictions", "score"]

__getattr__ = attach(
    __name__,
    {"exact_match": "metrics", "f1": "metrics", "read": "data", "read_predictions": "data", "score": "metrics"},
)
