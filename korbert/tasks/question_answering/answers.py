"""The answers of a question, from the scores of windows (windows.py) over texts of any length.

1. The model scores each piece of a window as start and end of the answer.
2. The best spans of each window are merged into the n_best answers of the question.
3. If questions may have no answer, the result also has the margin of [CLS], which means no answer, over the best span:
   ../kinds/question_answering.py compares the margin with the threshold of the model.

`right_answers` finds the gold answers of a row.
"""

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from korbert.messages import Message
from korbert.records import is_empty
from korbert.tasks.files import GoldAnswer, TaskRow
from korbert.tasks.passages import span_of_pieces
from korbert.tasks.question_answering.window_settings import WindowSettings
from korbert.tasks.question_answering.windows import Scored, Window

_Span = tuple[float, int, int, str]  # log probability, start, end, text

_SPANS_PER_ENTRY = 4  # candidate spans per window and n-best entry: several spans may have the same text
_NO_SPAN = -1e9  # score of the best span if there is none; JSON has no infinity


@dataclass(frozen=True)
class Answer:
    """An answer, `context[start:end]`; "" with span (0, 0) for none. score: probability of its ends in its window.

    no_answer_score: Found.no_answer, if the model may decline to answer.
    """

    answer: str
    start: int
    end: int
    score: float
    no_answer_score: float | None = None


class Found(NamedTuple):
    """Search result for one question, before the threshold is applied.

    candidates: its n_best answers, best first; empty if the context is white space.
    none: the empty answer; its score is the probability of [CLS] as both ends, the minimum over windows.
    no_answer: score of no answer minus score of the best candidate, where the score of a span is the sum of the log
    probabilities of its ends in its window. With one window this is the difference of logit sums in Devlin et al.
    2018, 4.3, whose tau is minus the threshold. Logits of different windows are not comparable: the loss does not
    change if a constant is added to all logits of a window.
    """

    candidates: list[Answer]
    none: Answer
    no_answer: float


def found_in(scored: Iterable[Scored], questions: int, settings: WindowSettings) -> list[Found]:
    """Merges window scores into a Found per question. scored: all windows, in any order, whose `index` is the question.

    The probability of no answer is that of [CLS] as both ends.
    """
    spans: list[list[_Span]] = [[] for _ in range(questions)]
    none_scores = [0.0] * questions  # 0 is the highest log probability
    for window, start, end, score in scored:
        spans[window.index] += _window_answers(window, start, end, settings)
        none_scores[window.index] = min(none_scores[window.index], score)
    results = []
    for question_spans, score in zip(spans, none_scores, strict=True):
        best: dict[str, Answer] = {}  # by their text
        for span_score, first, last, text in sorted(question_spans, key=lambda span: (-span[0], span[1], span[2])):
            if len(best) < settings.n_best and text not in best and text.strip():
                best[text] = Answer(text, first, last, math.exp(span_score))
        highest = max((span_score for span_score, _, _, text in question_spans if text.strip()), default=_NO_SPAN)
        results.append(Found(list(best.values()), Answer("", 0, 0, math.exp(score)), score - highest))
    return results


def _window_answers(window: Window, start: np.ndarray, end: np.ndarray, settings: WindowSettings) -> list[_Span]:
    """The best spans of one window. start, end: (P,), log probabilities of its P context pieces."""
    spans = window.context.spans[window.first : window.last]
    widths = spans[None, :, 1] - spans[:, None, 0]  # (P, P) characters, from first piece to last
    allowed = np.triu(widths > 0)
    short = allowed & (widths <= settings.max_answer_chars)
    if short.any():  # otherwise long answers are allowed
        allowed = short
    scores = np.where(allowed, start[:, None] + end[None, :], -np.inf).ravel()
    count = min(settings.n_best * _SPANS_PER_ENTRY, int(allowed.sum()))
    if count == 0:
        return []
    # The best spans are found without sorting all: there are as many as the square of the number of pieces.
    threshold = np.partition(scores, -count)[-count]
    best = np.flatnonzero(scores >= threshold)  # with all ties, by first piece, then by last
    best_spans = []
    for index in best[np.argsort(-scores[best], kind="stable")][:count]:
        first, last = divmod(int(index), len(spans))
        start_char, end_char = span_of_pieces(spans, first, last)
        text = window.context.text[start_char:end_char]
        best_spans.append((float(scores[index]), start_char, end_char, text))
    return best_spans


def right_answers(row: TaskRow) -> list[GoldAnswer]:
    """The answers of a row with `context` and `answers`, each with its position; empty for none.

    `answers` are those of cells.answers, or the same pairs read back from predictions.jsonl.

    A question has no answer if `answers` is None or has no visible text, or if `impossible` is true, whatever its
    answers: KLUE-MRC's rows in `datasets` hold plausible ones there. An answer without a position is placed at its
    first occurrence in the context. ValueError for an answer not in the context, and for no answer if `impossible` is
    false.
    """
    answers = [(text, start) for text, start in row.get("answers") or () if not is_empty(text)]
    if row.get("impossible"):
        return []
    if not answers and row.get("impossible") is False:
        raise ValueError(Message("the question has no answer, but is not marked as impossible"))
    gold_answers = []
    context = row["context"]
    for text, start in answers:
        spellings = [text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))]  # macOS writes NFD
        if start is None:
            match = next((spelling for spelling in map(str.strip, spellings) if spelling in context), None)
            if match is None:
                raise ValueError(Message("the context has no {answer!r:.60}", answer=text.strip()))
            start = context.index(match)
        else:
            match = next((spelling for spelling in spellings if context.startswith(spelling, start)), None)
            if match is None:
                raise ValueError(
                    Message(
                        "the context has {there!r:.60} at {start}, the answer is {answer!r:.60}",
                        there=context[start : start + len(text)], start=start, answer=text,
                    )
                )  # fmt: skip
        gold_answers.append(GoldAnswer(match, start))
    return gold_answers
