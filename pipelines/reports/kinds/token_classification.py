"""Labels of spans or words: scores by label, errors by cause, and errors in context."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from korbert.tasks.token_classification.bio import is_bio
from korbert.tasks.token_classification.labels import spans_of_words
from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.distributions import number_and_share, ranked_bars
from pipelines.reports.elements import Element, Entry, Folded, Section, Table
from pipelines.reports.kinds.common import Predicted, label_scores, marked

__all__ = ["sections"]

_EXAMPLES = 10  # texts of each cause
_CONFUSIONS = 10
_WINDOW_CHARS = 300  # of a long text, around its first error
_CAUSES = {
    "missed": "no prediction overlaps the true span",
    "invented": "the prediction overlaps no true span",
    "other label": "the right span with another label",
    "other ends": "the prediction overlaps a true span, but begins or ends elsewhere",
}

Span = tuple[int, int, str]


class _Error(NamedTuple):
    cause: str
    true: Span | None
    predicted: Span | None


def sections(kind: Any, predicted: Predicted, details: Json) -> Iterator[Section]:
    rows, predictions = [], []
    for row, prediction in predicted:
        rows.append(row)
        predictions.append(prediction)
    if not rows:
        return
    bio = is_bio(kind.tags)
    totals = kind.run(rows, predictions).sum(axis=0)
    labels = sorted({tag[2:] for tag in kind.tags if tag != "O"}) if bio else kind.tags
    note = "A span is correct if both ends and the label are." if bio else ""
    yield Section("Scores by label", [label_scores(labels, totals[: len(labels)], "spans" if bio else "words", note)])

    errors: list[_Error] = []
    examples: dict[str, list[Entry]] = {cause: [] for cause in _CAUSES}
    for row, prediction in zip(rows, predictions, strict=True):
        text = kind.texts(row)[0]
        in_row = list(span_errors(*(spans_of(kind, row, text, side) for side in (kind.target(row), prediction))))
        errors += in_row
        for cause in dict.fromkeys(error.cause for error in in_row):
            if len(examples[cause]) < _EXAMPLES:
                examples[cause].append(error_entry(text, [error for error in in_row if error.cause == cause]))
    if errors:
        text = "In the texts, true spans are green, predicted ones red and underlined." if bio else ""
        yield Section("Errors", list(cause_elements(errors, examples)), text)


def spans_of(kind: Any, row: dict[str, Any], text: str, labels: Sequence[Any]) -> Sequence[Span]:
    """Targets or predictions of a row as spans of its text."""
    if kind.units == "characters":
        return [(start, end, label) for start, end, label in labels]
    words: list[tuple[int, int]] = []
    for word in row.get("tokens") or text.split():
        start = text.index(word, words[-1][1] if words else 0)
        words.append((start, start + len(word)))
    if is_bio(kind.tags):
        return spans_of_words(labels, words)
    return [(start, end, label) for (start, end), label in zip(words, labels, strict=True)]


def span_errors(true: Sequence[Span], predicted: Sequence[Span]) -> Iterator[_Error]:
    """The differences; each span is part of at most one."""
    wrong = [span for span in predicted if span not in set(true)]
    for span in true:
        if span in set(predicted):
            continue
        overlapping = [other for other in wrong if other[0] < span[1] and span[0] < other[1]]
        if not overlapping:
            yield _Error("missed", span, None)
            continue
        other = next((other for other in overlapping if other[:2] == span[:2]), overlapping[0])
        wrong.remove(other)
        yield _Error("other label" if other[:2] == span[:2] else "other ends", span, other)
    for other in wrong:
        yield _Error("invented", None, other)


def error_entry(text: str, errors: Sequence[_Error]) -> Entry:
    """The text around the first error, with true and predicted spans."""
    true = sorted({error.true for error in errors if error.true})
    predicted = sorted({error.predicted for error in errors if error.predicted})
    first = min(start for start, *_ in (*true, *predicted))
    start = max(0, first - _WINDOW_CHARS // 2) if len(text) > _WINDOW_CHARS else 0
    shown = text[start : start + _WINDOW_CHARS]
    passage = [
        *([("… ", ())] if start else []),
        *marked(shown, {"right": true, "given": predicted}, start),
        *([(" …", ())] if start + len(shown) < len(text) else []),
    ]
    facts = [
        (name, ", ".join(f"{text[start:end]} ({label})" for start, end, label in spans))
        for name, spans in (("true", true), ("predicted", predicted))
        if spans
    ]
    return Entry("", "", facts, passage)


def cause_elements(errors: Sequence[_Error], examples: dict[str, list[Entry]]) -> Iterator[Element]:
    causes = Counter(error.cause for error in errors).most_common()
    if len(causes) > 1:
        note = f"{'; '.join(f'{cause}: {_CAUSES[cause]}' for cause, _ in causes)}."
        yield ranked_bars("Errors by cause", causes, number_and_share(len(errors)), note=note)
    confused = Counter(
        (error.true[2], error.predicted[2])
        for error in errors
        if error.cause == "other label" and error.true and error.predicted
    )
    if confused:
        rows = [(*pair, formatting.count(number)) for pair, number in confused.most_common(_CONFUSIONS)]
        yield Table("Most frequent confusions", ("true label", "predicted", "number"), rows, "kkr")
    for number, (cause, count) in enumerate(causes):
        title = f"{cause} · {formatting.count(count)}, {len(examples[cause])} texts shown"
        yield Folded(title, examples[cause], open=number == 0)
