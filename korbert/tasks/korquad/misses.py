"""Scores of KorQuAD answers, and why the wrong ones are wrong."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, get_args

from korbert.tasks.korquad.data import Answer, Dataset, Question
from korbert.tasks.korquad.metrics import exact_match, f1
from korbert.tasks.passages import Passage, cut, gold_pieces
from korbert.tasks.reading import Candidate

__all__ = ["Cause", "Snippet", "judge", "miss_cause", "snippets"]

Cause = Literal["unreachable", "boundary", "overlap", "elsewhere"]

_FEW_CHARS = 3  # both ends together: a particle (조사), a unit, a quote
_MISSES_SHOWN = 200
_AROUND_CHARS = 60  # of the context, to both sides of an answer


class Snippet(TypedDict):
    """`text` stands at `start` of the context, in code points."""

    start: int
    text: str


def judge(
    dataset: Dataset, pairs: Sequence[tuple[Passage, Passage]], n_best: Mapping[str, Sequence[Candidate]]
) -> dict[str, Any]:
    """Scores in percent, counts, and the first 200 misses with their causes, in the order of the file.

    pairs: (question, context) of each question as pieces. n_best: question id -> its answers, the best one first.
    A miss has the spans of the first right answer and of the given one (None where there is none), and the context
    around them. answer_chars, prediction_chars: entry i counts the (first) right answers and the given ones of i
    characters.
    """
    count = len(dataset.questions)
    f1_sum, unreachable = 0.0, 0
    misses: list[dict[str, Any]] = []
    for question, (_, context) in zip(dataset.questions, pairs, strict=True):
        prediction, span = _best(n_best[question.id])
        answers = [answer.text for answer in question.answers]
        reachable = _is_reachable(question, context)
        unreachable += not reachable
        f1_sum += f1(prediction, answers)
        if not exact_match(prediction, answers):
            cause = miss_cause(span, question.answers, reachable=reachable)
            right = question.answers[0].span
            shown = {"id": question.id, "question": question.text, "prediction": prediction, "answers": answers}
            spans = {"answer_span": right, "prediction_span": span}
            around = snippets(context.text, [right, span] if span else [right])
            misses.append({**shown, **spans, "snippets": around, "cause": cause})
    causes = Counter(miss["cause"] for miss in misses)
    return {
        "exact_match": 100.0 * (count - len(misses)) / count,
        "f1": 100.0 * f1_sum / count,
        "count": count,
        "gold_unreachable": unreachable,
        "by_cause": {cause: causes[cause] for cause in get_args(Cause)},
        "misses": misses[:_MISSES_SHOWN],
        "answer_chars": _histogram(len(question.answers[0].text) for question in dataset.questions),
        "prediction_chars": _histogram(len(_best(n_best[question.id])[0]) for question in dataset.questions),
    }


def _best(answers: Sequence[Candidate]) -> tuple[str, tuple[int, int] | None]:
    """Text and span of the best answer; an empty text and no span where there is none."""
    return (answers[0]["text"], (answers[0]["start"], answers[0]["end"])) if answers else ("", None)


def snippets(context: str, spans: Iterable[tuple[int, int]]) -> list[Snippet]:
    """The context around half-open spans, 60 characters to both sides, in order; one where they touch."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start - _AROUND_CHARS), end + _AROUND_CHARS) for start, end in spans):
        if ranges and start <= ranges[-1][1]:
            start, end = ranges[-1][0], max(ranges.pop()[1], end)
        ranges.append((start, end))
    return [{"start": start, "text": context[start:end]} for start, end in ranges]


def _is_reachable(question: Question, context: Passage) -> bool:
    """Whether the pieces over one of the right answers cut out exactly that, as the official score sees it."""
    for answer in question.answers:
        run = gold_pieces(context, *answer.span)
        if run:
            start, end = cut(context.spans, *run)
            if exact_match(context.text[start:end], [answer.text]):
                return True
    return False


def _histogram(lengths: Iterable[int]) -> list[int]:
    counts = Counter(lengths)
    return [counts[length] for length in range(max(counts, default=-1) + 1)]


def miss_cause(predicted: tuple[int, int] | None, answers: Sequence[Answer], *, reachable: bool) -> Cause:
    """Why an answer that does not match is wrong; spans are half-open, in code points of the context.

    unreachable: the pieces over a right answer cut out something else, so the model could hardly have given it;
    boundary: it lies over a right answer and at most three characters are too many or too few (학교에 for 학교);
    overlap: it shares at least one character with a right answer; elsewhere: it does not.
    """
    if not reachable:
        return "unreachable"
    if predicted is None:
        return "elsewhere"
    start, end = predicted
    over = [answer.span for answer in answers if start < answer.span[1] and answer.span[0] < end]
    if any(abs(start - a) + abs(end - b) <= _FEW_CHARS for a, b in over):
        return "boundary"
    return "overlap" if over else "elsewhere"
