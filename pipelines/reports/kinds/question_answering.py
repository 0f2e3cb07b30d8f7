"""Answers to questions: errors by cause, lengths of answers, and the errors themselves in context."""

from collections.abc import Iterator

from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Section, Table
from pipelines.reports.figures import label
from pipelines.reports.kinds.common import marked
from pipelines.reports.pictures import Line, curves

__all__ = ["sections"]

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


def sections(details: Json) -> Iterator[Section]:
    """From the details of scores.json; empty without them."""
    if "by_cause" not in details:
        return
    yield Section("Error analysis", tuple(_causes(details)))
    yield Section("Answers and windows", tuple(_answers(details)))
    yield Section("Errors", tuple(_misses(details)), _MARKED)


def _causes(details: Json) -> Iterator[Element]:
    causes = _by_frequency(details["by_cause"])
    total = sum(causes.values())
    if not total:
        return
    bars = tuple(
        Bar(
            cause,
            (number / max(causes.values()),),
            f"{formatting.count(number)}, {formatting.percent(number / total)}",
        )
        for cause, number in causes.items()
    )
    yield Bars("Errors by cause", bars, note=f"{formatting.count(total)} answers that do not match exactly.")
    rows = tuple((cause, _CAUSES.get(cause, "")) for cause in causes)
    yield Table("Definition of causes", ("cause", "predicted answer"), rows, "ll")


def _by_frequency(causes: dict[str, int]) -> dict[str, int]:
    return dict(sorted(causes.items(), key=lambda pair: (-pair[1], pair[0])))


def _answers(details: Json) -> Iterator[Element]:
    lines = [_histogram("correct", details["answer_chars"]), _histogram("predicted", details["prediction_chars"])]
    if any(line.x for line in lines):
        note = f"{_LONGEST_CHARS}: {_LONGEST_CHARS} characters or more."
        yield curves("Answer length", lines, x="characters", y="answers", floor=0, whole_y=True, note=note)
    questions = sum(details["answer_chars"])
    per_question = f"{formatting.decimal(formatting.ratio(details['windows'], questions))} per question"
    rows = [("windows", formatting.count(details["windows"]), per_question)]
    for key in ("questions_cut", "gold_unreachable"):
        share = formatting.percent(formatting.ratio(details[key], questions))
        rows.append((label(key), formatting.count(details[key]), share))
    yield Table("Windows", ("", "number", ""), tuple(rows), "lrr")


def _histogram(name: str, numbers: list[int]) -> Line:
    """Number of answers by length; the last point includes all longer ones."""
    shown = [*numbers[:_LONGEST_CHARS], sum(numbers[_LONGEST_CHARS:])]
    shown = shown[: len(numbers)]
    return Line(name, list(range(len(shown))), shown)


def _misses(details: Json) -> Iterator[Element]:
    """Missed answers by cause, with the most frequent cause expanded."""
    for place, cause in enumerate(_by_frequency(details["by_cause"])):
        entries = []
        for miss in details["misses"]:
            if miss["cause"] == cause:
                answers = " / ".join(dict.fromkeys(map(str, miss["answers"])))
                facts = (("correct", answers), ("predicted", miss["prediction"] or "(nothing)"))
                entries.append(Entry(str(miss["id"]), miss["question"], facts, tuple(_passage(miss))))
        if entries:
            yield Folded(f"{cause} · {len(entries)} shown", tuple(entries), open=place == 0)


def _passage(miss: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The context around both answers, as marked stretches; empty for artifacts without snippets."""
    spans = {"right": miss.get("answer_span"), "given": miss.get("prediction_span")}
    marks = {name: span for name, span in spans.items() if span}
    for number, snippet in enumerate(miss.get("snippets", ())):
        start, text = snippet["start"], snippet["text"]
        if start or number:
            yield (" … " if number else "… "), ()
        yield from marked(text, {name: [span] for name, span in marks.items()}, start)
    if miss.get("snippets"):
        yield " …", ()
