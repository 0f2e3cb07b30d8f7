"""Answers to questions: errors by cause, lengths of answers, and the errors themselves in context."""

from collections.abc import Iterator, Sequence

from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.distributions import most_frequent, number_and_share, ranked_bars
from korbert.pipelines.reports.elements import Element, Entry, Folded, Marked, Section, Table
from korbert.pipelines.reports.examples import marked
from korbert.pipelines.reports.figures import label
from korbert.pipelines.reports.kinds.common import Scored
from korbert.pipelines.reports.pictures import Line, curves

_CAUSES = {
    "unreachable": "can hardly match: no span of pieces equals a correct answer",
    "boundary": "overlaps a correct answer, off by at most three characters (학교에 for 학교)",
    "overlap": "overlaps a correct answer, off by more",
    "elsewhere": "does not overlap a correct answer",
    "invented": "is given though the question has no answer",
    "unanswered": "is not given though the question has an answer",
}
_MARKED = "Questions with their contexts; the correct answer in green, the predicted one in red and underlined."
_LONGEST_CHARS = 40  # last point of the histogram: this long or longer


def sections(scored: Scored, details: Json) -> Iterator[Section]:
    """From the details of scores.json."""
    causes = most_frequent(details["by_cause"])
    yield Section("Error analysis", list(cause_elements(causes)))
    yield Section("Answers and windows", list(answer_elements(details)))
    yield Section("Errors", list(miss_elements(causes, details["misses"])), _MARKED)


def cause_elements(causes: dict[str, int]) -> Iterator[Element]:
    total = sum(causes.values())
    if total:
        note = f"{formatting.count(total)} answers that do not match exactly."
        yield ranked_bars("Errors by cause", causes.items(), number_and_share(total), note=note)
        rows = [(cause, _CAUSES.get(cause, "")) for cause in causes]
        yield Table("Definition of causes", ("cause", "predicted answer"), rows, "ll")


def answer_elements(details: Json) -> Iterator[Element]:
    lines = []
    for name, key in (("correct", "answer_chars"), ("predicted", "prediction_chars")):
        numbers = details[key]  # of answers by length; the last point includes all longer ones
        shown = [*numbers[:_LONGEST_CHARS], sum(numbers[_LONGEST_CHARS:])][: len(numbers)]
        lines.append(Line(name, range(len(shown)), shown))
    note = f"{_LONGEST_CHARS}: {_LONGEST_CHARS} characters or more."
    yield from curves("Answer length", lines, x="characters", y="answers", floor=0, whole_y=True, note=note)
    questions = sum(details["answer_chars"])
    per_question = f"{formatting.decimal(formatting.ratio(details['windows'], questions))} per question"
    rows = [("windows", formatting.count(details["windows"]), per_question)]
    for key in ("questions_cut", "gold_unreachable"):
        share = formatting.percent(formatting.ratio(details[key], questions))
        rows.append((label(key), formatting.count(details[key]), share))
    yield Table("Windows", ("", "number", ""), rows, "lrr")


def miss_elements(causes: dict[str, int], misses: Sequence[Json]) -> Iterator[Element]:
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
