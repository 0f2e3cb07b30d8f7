"""Answers to questions: errors by cause, and the errors themselves in context."""

from collections import Counter
from collections.abc import Iterator, Sequence

from korbert.messages import Message
from korbert.pipelines.artifacts import formatting, label
from korbert.pipelines.reports.drawing import Example, Folded, Marked, Section, TableElement, split_at_spans
from korbert.pipelines.reports.kinds.common import Causes, ScoredRows, cause_bars
from korbert.system import JsonObject

_CAUSES: Causes = {
    "unreachable": (Message("unreachable"), Message("no span of pieces equals a correct answer")),
    "boundary": (
        Message("boundary"),
        Message("overlaps a correct answer, off by at most three characters (학교에 for 학교)"),
    ),
    "overlap": (Message("overlap"), Message("overlaps a correct answer, off by more")),
    "elsewhere": (Message("elsewhere"), Message("does not overlap a correct answer")),
    "invented": (Message("invented"), Message("an answer though the question has none")),
    "unanswered": (Message("unanswered"), Message("no answer though the question has one")),
}
_MARKED = Message(
    "Questions with their contexts; the correct answer in green, the predicted one in red and underlined."
)


def sections(scored: ScoredRows, details: JsonObject) -> Iterator[Section]:
    """Yields the sections on answers. details: as in scores.json."""
    causes = dict(Counter[str](details["by_cause"]).most_common())
    yield Section(Message("Error analysis"), [*cause_bars(causes, _CAUSES), windows(details)])
    yield Section(Message("Errors"), list(miss_elements(causes, details["misses"])), _MARKED)


def windows(details: JsonObject) -> TableElement:
    questions = sum(details["answer_chars"])
    per_question = formatting.decimal(formatting.ratio(details["windows"], questions))
    rows = [(Message("windows"), formatting.count(details["windows"]), "")]
    for key in ("questions_cut", "gold_unreachable"):
        share = formatting.percent(formatting.ratio(details[key], questions))
        rows.append((label(key), formatting.count(details[key]), share))
    return TableElement(
        Message("Windows"),
        ("", Message("number"), Message("share of questions")),
        rows,
        "lrr",
        note=Message("{windows} windows per question.", windows=per_question),
    )


def miss_elements(causes: dict[str, int], misses: Sequence[JsonObject]) -> Iterator[Folded]:
    """Missed answers by cause, with the most frequent cause expanded."""
    for number, cause in enumerate(causes):
        entries = [
            Example(
                str(miss["id"]),
                miss["question"],
                (
                    (Message("correct"), " / ".join(dict.fromkeys(map(str, miss["answers"])))),
                    (Message("predicted"), miss["prediction"] or Message("(nothing)")),
                ),
                list(passage_of(miss)),
            )
            for miss in misses
            if miss["cause"] == cause
        ]
        if entries:
            yield Folded(
                Message("{cause} · {shown} shown", cause=_CAUSES[cause][0], shown=len(entries)),
                entries,
                open=number == 0,
            )


def passage_of(miss: JsonObject) -> Iterator[Marked]:
    """Yields the context around the correct and the predicted answer, as marked stretches."""
    spans = {"right": miss["answer_span"], "given": miss["prediction_span"]}
    for number, snippet in enumerate(miss["snippets"]):
        start = snippet["start"]
        if number:
            yield " … ", ()
        elif start:
            yield "… ", ()
        yield from split_at_spans(snippet["text"], {name: [span] for name, span in spans.items() if span}, start)
    if miss["snippets"]:
        yield " …", ()
