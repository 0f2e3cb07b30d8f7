"""Exact match and character F1 of KorQuAD 1.0, as the official `evaluate-v1.0.py` computes them.

Both compare normalised strings. Steps, in order: quotes, brackets and ' " become spaces; upper case becomes
lower case; ASCII punctuation is deleted and leaves no space; runs of white space become one space. Particles stay.
"""

import logging
import string
from collections import Counter
from collections.abc import Iterable, Mapping

from korbert.errors import CorpusError
from korbert.tasks.files import TaskRows

_logger = logging.getLogger(__name__)

_SPACED = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))  # “ ” 「 」 『 』 · … are not among them and stay
_DELETED = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """The string that is compared: `normalize("《Kiwi》의, 한-국") == "kiwi 의 한국"`."""
    return " ".join(text.translate(_SPACED).lower().translate(_DELETED).split())


def exact_match(prediction: str, answers: Iterable[str]) -> bool:
    """Whether the prediction equals one of the answers, spaces included, both normalised."""
    normalized = normalize(prediction)
    return any(normalized == normalize(answer) for answer in answers)


def f1(prediction: str, answers: Iterable[str]) -> float:
    """The best character F1 over the answers, 0 to 1; spaces do not count, order does not either.

    Without a shared character it is 0, even if neither the prediction nor the answer has any character.
    """
    best = 0.0
    predicted = Counter(normalize(prediction).replace(" ", ""))
    for answer in answers:
        expected = Counter(normalize(answer).replace(" ", ""))
        shared = (predicted & expected).total()
        if shared:
            precision = shared / predicted.total()
            recall = shared / expected.total()
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


def score(rows: TaskRows, predictions: Mapping[str, str]) -> dict[str, float]:
    """`{"exact_match": .., "f1": ..}` in percent over all questions of an official file, from `read`.

    A question without a prediction counts as wrong, with a warning. CorpusError for a question without an answer.
    """
    matches = 0
    f1_sum = 0.0
    unanswered = 0
    for row, place in zip(rows, rows.places, strict=True):
        answers = [answer.text for answer in row["answers"] or ()]
        if not answers:
            raise CorpusError(
                "{place}: question {row} has no answer: give a file with answers", place=place, row=row["id"]
            )
        prediction = predictions.get(row["id"])
        if prediction is None:
            unanswered += 1
            continue
        matches += exact_match(prediction, answers)
        f1_sum += f1(prediction, answers)
    if unanswered:
        _logger.warning("%d of %d questions have no prediction and score 0", unanswered, len(rows))
    return {"exact_match": 100.0 * matches / len(rows), "f1": 100.0 * f1_sum / len(rows)}
