"""Why extracted answers are wrong."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np

from korbert.system import JsonObject
from korbert.tasks.files import GoldAnswer, TaskRow
from korbert.tasks.metrics.question_answering import KORQUAD, answer_scores
from korbert.tasks.passages import Passage, pieces_of_span, span_of_pieces
from korbert.tasks.question_answering import right_answers

Cause = Literal["unreachable", "boundary", "overlap", "elsewhere", "invented", "unanswered"]
"""Why an answer is wrong: see miss_cause. The last two only if some questions have no answer."""

_FEW_CHARS = 3  # off at both ends together: a particle (조사), a unit, a quote
_MISSES_SHOWN = 200
_AROUND_CHARS = 60  # of context on each side of an answer


def explain_misses(
    rows: Sequence[TaskRow], contexts: Sequence[Passage], predictions: Sequence[JsonObject]
) -> JsonObject:
    """Causes of wrong answers, by KorQuAD's exact match, and the first 200 misses, in the order of the rows.

    contexts: of each row, as pieces. predictions: as in korbert.tasks.kinds.question_answering.
    A miss has the spans of the first gold answer and of the prediction (None if there is none), and the context around
    them. answer_chars, prediction_chars: entry i counts the (first) gold answers and the predictions of i characters.
    """
    golds = [right_answers(row) for row in rows]
    predicted = [prediction["answer"] for prediction in predictions]
    exact, _ = answer_scores(predicted, [[answer.text for answer in answers] for answers in golds], KORQUAD)
    reachable = [
        not answers or any(_is_reachable(answer, context) for answer in answers)
        for answers, context in zip(golds, contexts, strict=True)
    ]
    halves = not all(golds)
    misses = []
    for number in np.flatnonzero(exact == 0).tolist():
        row = rows[number]
        answers = golds[number]
        prediction = predictions[number]
        gold_span = answers[0].span if answers else None
        predicted_span = (prediction["start"], prediction["end"]) if prediction["answer"] else None
        miss = {
            "id": row.get("id"),
            "question": row["question"],
            "prediction": prediction["answer"],
            "answers": [answer.text for answer in answers],
            "answer_span": gold_span,
            "prediction_span": predicted_span,
            "snippets": snippets(row["context"], filter(None, (gold_span, predicted_span))),
            "cause": miss_cause(predicted_span, answers, reachable=reachable[number], halves=halves),
        }
        misses.append(miss)
    causes = Counter(miss["cause"] for miss in misses)
    return {
        "gold_unreachable": reachable.count(False),
        "by_cause": {cause: causes[cause] for cause in get_args(Cause)[: None if halves else 4]},
        "misses": misses[:_MISSES_SHOWN],
        "answer_chars": np.bincount([len(answers[0].text) if answers else 0 for answers in golds]).tolist(),
        "prediction_chars": np.bincount(list(map(len, predicted))).tolist(),
    }


def snippets(context: str, spans: Iterable[tuple[int, int]]) -> list[JsonObject]:
    """Context around half-open spans, 60 characters on each side, in order; touching snippets are merged.

    `text` begins at `start` of the context, in code points.
    """
    ranges: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start - _AROUND_CHARS), end + _AROUND_CHARS) for start, end in spans):
        if ranges and start <= ranges[-1][1]:
            before, last = ranges.pop()
            ranges.append((before, max(last, end)))
        else:
            ranges.append((start, end))
    return [{"start": start, "text": context[start:end]} for start, end in ranges]


def miss_cause(
    predicted: tuple[int, int] | None, answers: Sequence[GoldAnswer], *, reachable: bool, halves: bool = False
) -> Cause:
    """Why a wrong answer is wrong; spans are half-open, in code points of the context.

    invented: there is no answer;
    unreachable: no gold answer can be extracted exactly along piece boundaries, so the model could not have given it;
    unanswered: no answer was given to a question that has one; only where some questions have none (halves);
    boundary: it overlaps a gold answer, off by at most three characters in total (학교에 for 학교);
    overlap: it shares at least one character with a gold answer; elsewhere: it does not.
    """
    if not answers:
        return "invented"
    if not reachable:
        return "unreachable"
    if predicted is None:
        return "unanswered" if halves else "elsewhere"
    start, end = predicted
    overlapping = [answer.span for answer in answers if start < answer.span[1] and answer.span[0] < end]
    if any(abs(start - a) + abs(end - b) <= _FEW_CHARS for a, b in overlapping):
        return "boundary"
    return "overlap" if overlapping else "elsewhere"


def _is_reachable(answer: GoldAnswer, context: Passage) -> bool:
    """Whether the pieces over the answer extract exactly the answer, by KorQuAD's metric."""
    if (pieces := pieces_of_span(context, *answer.span)) is None:
        return False
    start, end = span_of_pieces(context.spans, *pieces)
    return KORQUAD.exact_match(context.text[start:end], [answer.text])
