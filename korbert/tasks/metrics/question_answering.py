"""Answer metrics: KorQuAD's (../korquad/metrics.py), KLUE-MRC's, and unanswerable questions as in SQuAD 2.0.

Every score takes the predicted text and the texts of the gold answers; a question without an answer
has none, and then the correct prediction is the empty text.
"""

import string
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.korquad import metrics as korquad

_DELETED = str.maketrans("", "", string.punctuation)


class AnswerMetrics(NamedTuple):
    """Scores of a prediction against the gold answers: exact match, and overlap from 0 to 1."""

    exact_match: Callable[[str, Sequence[str]], bool]
    f1: Callable[[str, Sequence[str]], float]


def klue_exact_match(prediction: str, answers: Sequence[str]) -> bool:
    """Whether the prediction equals one of the answers, both in lower case, without ASCII punctuation or double spaces.

    KLUE-baseline, klue_baseline/metrics/utils.py. Its pattern for Korean quotes and brackets, meant to be KorQuAD's,
    asks for five of them in a row, so that 《》 and ‘’ stay in the text there; they stay here.
    """
    return _normalize(prediction) in ([_normalize(answer) for answer in answers] or [""])


def rouge_w(prediction: str, answers: Sequence[str]) -> float:
    """KLUE-MRC's ROUGE-W, the best over the answers, 0 to 1; texts are normalised as in `klue_exact_match`.

    With L the length of the longest run of characters, spaces included, that both texts have: the harmonic mean of
    L / characters of the prediction and L / characters of the answer (KLUE-baseline, klue_baseline/metrics/utils.py,
    rouge_w_score_for_klue_mrc). That is not the weighted subsequence of Lin 2004, which gave it its name. An empty
    answer scores 1 for an empty prediction, else 0. Answers of 200 characters and more can score lower in the script,
    whose matcher starts no run at frequent characters; here it does.
    """
    predicted = _normalize(prediction)
    best = 0.0
    for answer in map(_normalize, answers or [""]):
        if not answer or not predicted:
            best = max(best, float(predicted == answer))
            continue
        shared = SequenceMatcher(None, predicted, answer, autojunk=False).find_longest_match().size
        best = max(best, 2 * shared / (len(predicted) + len(answer)))  # the harmonic mean, multiplied out
    return best


def _normalize(text: str) -> str:
    return " ".join(text.lower().translate(_DELETED).split())


KORQUAD = AnswerMetrics(korquad.exact_match, korquad.f1)
"""The official metrics of KorQuAD."""

KLUE_MRC = AnswerMetrics(klue_exact_match, rouge_w)
"""The official metrics of KLUE-MRC; ROUGE-W takes the place of F1."""


def answer_scores(
    predictions: Sequence[str], answers: Sequence[Sequence[str]], metrics: AnswerMetrics
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(N,) exact matches, 0 or 1, and (N,) F1 of each question, before any threshold.

    A question without answers scores 1 in both for a prediction that is empty once normalised, else 0 (SQuAD 2.0,
    evaluate-v2.0.py).
    """
    exact = np.zeros(len(predictions))
    f1 = np.zeros(len(predictions))
    for i, (prediction, texts) in enumerate(zip(predictions, answers, strict=True)):
        exact[i] = metrics.exact_match(prediction, texts or [""])
        f1[i] = metrics.f1(prediction, texts) if texts else exact[i]
    return exact, f1


def best_threshold(
    scores: NDArray[np.float64], has_answer: NDArray[np.bool_], no_answer: NDArray[np.floating]
) -> float:
    """The threshold with the highest mean score, the lowest among ties. Choose on validation.

    Questions with no_answer above it are left unanswered. (N,) each: scores from `answer_scores`, at least one
    question; no_answer: the score of the empty span minus that of the best one (Devlin et al. 2018, 4.3). Candidates:
    each value of no_answer, and the minimum minus 1, which leaves all unanswered. SQuAD 2.0's
    find_best_thresh does the same, but also separates equal values, which no threshold can.
    """
    order = np.argsort(no_answer, kind="stable")
    gains = np.append(0.0, np.cumsum((scores - ~has_answer)[order]))  # of answering the first 0, 1, .. questions
    values = np.append(no_answer[order[0]] - 1.0, no_answer[order])
    is_last = np.append(values[1:] != values[:-1], True)
    return float(values[np.argmax(np.where(is_last, gains, -np.inf))])
