"""Labels of spans or words: scores by label, errors by cause, and errors in context."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from korbert.messages import Message
from korbert.pipelines.artifacts import formatting
from korbert.pipelines.reports.drawing import Element, Example, Folded, Section, TableElement, split_at_spans
from korbert.pipelines.reports.kinds.common import Causes, ScoredRows, cause_bars, label_scores
from korbert.system import JsonObject
from korbert.tasks.token_classification import is_bio, spans_of_words

_EXAMPLES = 10  # texts of each cause
_CONFUSIONS = 10
_WINDOW_CHARS = 300  # of a long text, around its first error
_CAUSES: Causes = {
    "missed": (Message("missed"), Message("no prediction overlaps the true span")),
    "invented": (Message("invented"), Message("the prediction overlaps no true span")),
    "other label": (Message("other label"), Message("the right span with another label")),
    "other ends": (Message("other ends"), Message("the prediction overlaps a true span, but begins or ends elsewhere")),
}

MarkedSpan = tuple[int, int, str]
SpanError = tuple[MarkedSpan | None, MarkedSpan | None]
"""A true span and the predicted one; None if there is none."""


def sections(scored: ScoredRows, details: JsonObject) -> Iterator[Section]:
    kind = scored.kind
    bio = is_bio(kind.tags)
    totals = kind.run(scored.rows, scored.predictions).sum(axis=0)
    table = label_scores(kind.tags, totals[: len(kind.tags)], Message("words"))
    if bio:
        labels = sorted({tag[2:] for tag in kind.tags if tag != "O"})
        table = label_scores(
            labels,
            totals[: len(labels)],
            Message("spans"),
            Message("A span is correct if both ends and the label are."),
        )
    yield Section(Message("Scores by label"), [table])

    errors: dict[str, dict[str, list[SpanError]]] = {}  # cause -> text -> errors in it
    for row, prediction in zip(scored.rows, scored.predictions, strict=True):
        text = kind.texts(row)[0]
        true, predicted = (spans_of(kind, row, text, of_side) for of_side in (kind.target(row), prediction))
        for cause, error in span_errors(true, predicted):
            errors.setdefault(cause, {}).setdefault(text, []).append(error)
    if errors:
        text = Message("In the texts, true spans are green, predicted ones red and underlined.") if bio else ""
        yield Section(Message("Errors"), list(cause_elements(errors)), text)


def spans_of(kind: Any, row: dict[str, Any], text: str, labels: Sequence[Any]) -> Sequence[MarkedSpan]:
    """A target or a prediction of a row as spans of its text."""
    if kind.units == "characters":
        return [(start, end, label) for start, end, label in labels]
    words: list[tuple[int, int]] = []
    end = 0
    for word in row.get("tokens") or text.split():
        start = text.index(word, end)
        end = start + len(word)
        words.append((start, end))
    if is_bio(kind.tags):
        return spans_of_words(labels, words)
    return [(start, end, label) for (start, end), label in zip(words, labels, strict=True)]


def span_errors(true: Sequence[MarkedSpan], predicted: Sequence[MarkedSpan]) -> Iterator[tuple[str, SpanError]]:
    """Yields the differences between true and predicted spans, with their causes; a span is part of at most one."""
    unmatched = [span for span in predicted if span not in set(true)]
    for span in true:
        if span in set(predicted):
            continue
        overlapping = [other for other in unmatched if other[0] < span[1] and span[0] < other[1]]
        if not overlapping:
            yield "missed", (span, None)
            continue
        # A prediction with the same ends is preferred to the first that overlaps.
        other = next((other for other in overlapping if other[:2] == span[:2]), overlapping[0])
        unmatched.remove(other)
        yield "other label" if other[:2] == span[:2] else "other ends", (span, other)
    for other in unmatched:
        yield "invented", (None, other)


def error_entry(text: str, errors: Sequence[SpanError]) -> Example:
    """The text around the first error, with true and predicted spans."""
    sides = {"right": Message("true"), "given": Message("predicted")}
    spans = {mark: sorted({span for error in errors if (span := error[side])}) for side, mark in enumerate(sides)}
    first_start = min(start for of_side in spans.values() for start, *_ in of_side)
    start = max(0, first_start - _WINDOW_CHARS // 2) if len(text) > _WINDOW_CHARS else 0
    shown = text[start : start + _WINDOW_CHARS]
    passage = list(split_at_spans(shown, spans, start))
    if start:
        passage.insert(0, ("… ", ()))
    if start + len(shown) < len(text):
        passage.append((" …", ()))
    return Example(
        "",
        "",
        [
            (sides[mark], ", ".join(f"{text[start:end]} ({label})" for start, end, label in of_side))
            for mark, of_side in spans.items()
            if of_side
        ],
        passage,
    )


def cause_elements(errors: Mapping[str, Mapping[str, Sequence[SpanError]]]) -> Iterator[Element]:
    """Yields charts and examples of errors. errors: cause -> text -> errors in it."""
    totals = Counter({cause: sum(map(len, by_text.values())) for cause, by_text in errors.items()})
    causes = dict(totals.most_common())
    yield from cause_bars(causes, _CAUSES)
    swapped = (pair for of_text in errors.get("other label", {}).values() for pair in of_text)
    confused = Counter((true[2], predicted[2]) for true, predicted in swapped if true and predicted)
    if confused:
        yield TableElement(
            Message("Most frequent confusions"),
            (Message("true label"), Message("predicted"), Message("number")),
            [(*pair, formatting.count(number)) for pair, number in confused.most_common(_CONFUSIONS)],
            "kkr",
        )
    for number, (cause, count) in enumerate(causes.items()):
        texts = list(errors[cause].items())[:_EXAMPLES]
        yield Folded(
            Message(
                "{cause} · {errors:,}, {count} text shown",
                "{cause} · {errors:,}, {count} texts shown",
                cause=_CAUSES[cause][0],
                errors=count,
                count=len(texts),
            ),
            [error_entry(text, of_text) for text, of_text in texts],
            open=number == 0,
        )
