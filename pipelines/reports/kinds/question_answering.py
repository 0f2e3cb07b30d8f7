"""Answers to questions: errors by cause, and the errors themselves in context."""

from collections import Counter
from collections.abc import Iterator, Sequence

from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.elements import Entry, Folded, Marked, Section, Table
from korbert.pipelines.reports.examples import marked
from korbert.pipelines.reports.figures import label
from korbert.pipelines.reports.kinds.common import Scored, cause_bars

_CAUSES = {
    "unreachable": "no span of pieces equals a correct answer",
    "boundary": "overlaps a correct answer, off by at most three characters (학교에 for 학교)",
    "overlap": "overlaps a correct answer, off by more",
    "elsewhere": "does not overlap a correct answer",
    "invented": "an answer though the question has none",
    "unanswered": "no answer though the question has one",
}
_MARKED = "Questions with their contexts; the correct answer in green, the predicted one in red and underlined."


def sections(scored: Scored, details: Json) -> Iterator[Section]:
    """From the details of scores.json."""
    causes = dict(Counter[str](details["by_cause"]).most_common())
    yield Section("Error analysis", [*cause_bars(causes, _CAUSES), windows(details)])
    yield Section("Errors", list(miss_elements(causes, details["misses"])), _MARKED)


def windows(details: Json) -> Table:
    questions = sum(details["answer_chars"])
    per_question = formatting.decimal(formatting.ratio(details["windows"], questions))
    rows = [("windows", formatting.count(details["windows"]), "")]
    for key in ("questions_cut", "gold_unreachable"):
        share = formatting.percent(formatting.ratio(details[key], questions))
        rows.append((label(key), formatting.count(details[key]), share))
    note = f"{per_question} windows per question."
    return Table("Windows", ("", "number", "share of questions"), rows, "lrr", note=note)


def miss_elements(causes: dict[str, int], misses: Sequence[Json]) -> Iterator[Folded]:
    """Missed answers by cause, with the most frequent cause expanded."""
    for number, cause in enumerate(causes):
        entries = []
        for miss in misses:
            if miss["cause"] == cause:
                answers = " / ".join(dict.fromkeys(map(str, miss["answers"])))
                facts = (("correct", answers), ("predicted", miss["prediction"] or "(nothing)"))
                entries.append(Entry(str(miss["id"]), miss["question"], facts, list(passage_of(miss))))
        if entries:
            yield Folded(f"{cause} · {len(entries)} shown", entries, open=number == 0)


def passage_of(miss: Json) -> Iterator[Marked]:
    """The context around both answers, as marked stretches."""
    spans = {"right": miss["answer_span"], "given": miss["prediction_span"]}
    for number, snippet in enumerate(miss["snippets"]):
        start, text = snippet["start"], snippet["text"]
        if start or number:
            yield (" … " if number else "… "), ()
        yield from marked(text, {name: [span] for name, span in spans.items() if span}, start)
    if miss["snippets"]:
        yield " …", ()
