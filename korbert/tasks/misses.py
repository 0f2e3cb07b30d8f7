"""Scores of extracted answers, and the causes of wrong ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from korbert.tasks.metrics.reading import answer_scores
from korbert.tasks.no_answer import score_halves
from korbert.tasks.passages import Passage, pieces_of_span, span_of_pieces
from korbert.tasks.questions import Answer, AnswerMetrics, Dataset, Question
from korbert.tasks.reading import Candidate

__all__ = ["Cause", "NoAnswerCause", "Snippet", "miss_cause", "score_answers", "snippets"]

Cause = Literal["unreachable", "boundary", "overlap", "elsewhere"]
"""Why an answer is wrong: see miss_cause."""

NoAnswerCause = Literal["invented", "unanswered"]
"""Only if some questions have no answer: one is invented, or an existing one is not given."""

_FEW_CHARS = 3  # off at both ends together: a particle (조사), a unit, a quote
_MISSES_SHOWN = 200
_AROUND_CHARS = 60  # of context on each side of an answer


class Snippet(TypedDict):
    """`text` begins at `start` of the context, in code points."""

    start: int
    text: str


def score_answers(
    dataset: Dataset,
    pairs: Sequence[tuple[Passage, Passage]],
    n_best: Mapping[str, Sequence[Candidate]],
    metrics: AnswerMetrics,
) -> dict[str, Any]:
    """Scores in percent, counts, and the first 200 misses with their causes, in the order of the file.

    pairs: (question, context) of each question as pieces. n_best: question id -> its answers, best first.
    A miss has the spans of the first gold answer and of the prediction (None if there is none), and the context around
    them. answer_chars, prediction_chars: entry i counts the (first) gold answers and the predictions of i characters.
    If some questions have no answer, `has_answer` and `no_answer` are the scores of both halves (no_answer.py), and the
    causes of NoAnswerCause are included.
    """
    best = {id: candidates[0]["text"] if candidates else "" for id, candidates in n_best.items()}
    right = [[answer.text for answer in question.answers] for question in dataset.questions]
    exact, f1 = answer_scores([best[question.id] for question in dataset.questions], right, metrics)
    reachable = [
        not question.answers or any(_is_reachable(answer, context, metrics) for answer in question.answers)
        for question, (_, context) in zip(dataset.questions, pairs, strict=True)
    ]
    halves = not all(right)
    misses = [
        _miss(question, context.text, n_best[question.id], reachable=can_be_given, halves=halves)
        for question, (_, context), matches, can_be_given in zip(
            dataset.questions, pairs, exact, reachable, strict=True
        )
        if not matches
    ]
    count = len(dataset.questions)
    causes = Counter(miss["cause"] for miss in misses)
    scores = {
        "exact_match": 100.0 * (count - len(misses)) / count,
        "f1": 100.0 * float(np.cumsum(f1)[-1]) / count,  # sequential: pairwise summation changes the last bits
        "count": count,
        "gold_unreachable": reachable.count(False),
        "by_cause": {
            cause: causes[cause] for cause in (*get_args(Cause), *(get_args(NoAnswerCause) if halves else ()))
        },
        "misses": misses[:_MISSES_SHOWN],
        "answer_chars": _histogram(Counter(len(texts[0]) if texts else 0 for texts in right)),
        "prediction_chars": _histogram(Counter(len(best[question.id]) for question in dataset.questions)),
    }
    if halves:
        by_half = score_halves(dataset, best, metrics)
        scores |= {name: by_half[name] for name in ("has_answer", "no_answer")}
    return scores


def _miss(
    question: Question, context: str, candidates: Sequence[Candidate], *, reachable: bool, halves: bool
) -> dict[str, Any]:
    """Record of a wrong answer. halves: whether some questions have no answer."""
    best = next(iter(candidates), None)
    span = (best["start"], best["end"]) if best and best["text"] else None
    right = question.answers[0].span if question.answers else None
    cause: Cause | NoAnswerCause = miss_cause(span, question.answers, reachable=reachable)
    if right is None:
        cause = "invented"
    elif span is None and halves and reachable:
        cause = "unanswered"
    return {
        "id": question.id,
        "question": question.text,
        "prediction": best["text"] if best else "",
        "answers": [answer.text for answer in question.answers],
        "answer_span": right,
        "prediction_span": span,
        "snippets": snippets(context, filter(None, (right, span))),
        "cause": cause,
    }


def snippets(context: str, spans: Iterable[tuple[int, int]]) -> list[Snippet]:
    """Context around half-open spans, 60 characters on each side, in order; touching snippets are merged."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start - _AROUND_CHARS), end + _AROUND_CHARS) for start, end in spans):
        if ranges and start <= ranges[-1][1]:
            start, end = ranges[-1][0], max(ranges.pop()[1], end)
        ranges.append((start, end))
    return [{"start": start, "text": context[start:end]} for start, end in ranges]


def miss_cause(predicted: tuple[int, int] | None, answers: Sequence[Answer], *, reachable: bool) -> Cause:
    """Why a wrong answer is wrong; spans are half-open, in code points of the context.

    unreachable: no gold answer can be extracted exactly along piece boundaries, so the model could not have given it;
    boundary: it overlaps a gold answer, off by at most three characters in total (학교에 for 학교);
    overlap: it shares at least one character with a gold answer; elsewhere: it does not.
    """
    if not reachable:
        return "unreachable"
    if predicted is None:
        return "elsewhere"
    start, end = predicted
    overlapping = [answer.span for answer in answers if start < answer.span[1] and answer.span[0] < end]
    if any(abs(start - a) + abs(end - b) <= _FEW_CHARS for a, b in overlapping):
        return "boundary"
    return "overlap" if overlapping else "elsewhere"


def _is_reachable(answer: Answer, context: Passage, metrics: AnswerMetrics) -> bool:
    """Whether the pieces over the answer extract exactly that, by the official metric."""
    pieces = pieces_of_span(context, *answer.span)
    if pieces is None:
        return False
    start, end = span_of_pieces(context.spans, *pieces)
    return metrics.exact_match(context.text[start:end], [answer.text])


def _histogram(counts: Counter[int]) -> list[int]:
    return [counts[length] for length in range(max(counts, default=-1) + 1)]
