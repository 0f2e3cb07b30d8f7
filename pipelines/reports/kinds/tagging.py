"""Labels of spans or words: scores by label, errors by cause, and errors in context."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from korbert.tasks.token_classification.bio import is_bio
from korbert.tasks.token_classification.labels import spans_of_words
from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Section, Table
from pipelines.reports.evaluation import marked

__all__ = ["sections"]

_EXAMPLES = 10  # texts of each cause
_CONFUSIONS = 10
_WINDOW_CHARS = 300  # of a long text, around its first error
_UNFOLDED = 20  # rows of a table
_CAUSES = {
    "missed": "no prediction overlaps the true span",
    "invented": "the prediction overlaps no true span",
    "other label": "the right span with another label",
    "other ends": "the prediction overlaps a true span, but begins or ends elsewhere",
}

Span = tuple[int, int, str]


def sections(kind: Any, predicted: Iterable[tuple[dict[str, Any], Any]]) -> Iterator[Section]:
    rows, predictions = [], []
    for row, prediction in predicted:
        rows.append(row)
        predictions.append(prediction)
    if not rows:
        return
    spans = is_bio(kind.tags)
    totals = kind.run(rows, predictions).sum(axis=0)
    labels = sorted({tag[2:] for tag in kind.tags if tag != "O"}) if spans else kind.tags
    yield Section("Scores by label", (_table(labels, totals[: len(labels)], spans),))

    causes: Counter[str] = Counter()
    confused: Counter[tuple[str, str]] = Counter()
    examples: dict[str, list[Entry]] = {cause: [] for cause in _CAUSES}
    for row, prediction in zip(rows, predictions, strict=True):
        text, target = kind.texts(row)[0], kind.target(row)
        if kind.units == "words":
            places = _places(text, row.get("tokens") or text.split())
            sides = [
                spans_of_words(tags, places)
                if spans
                else [(start, end, tag) for (start, end), tag in zip(places, tags, strict=True)]
                for tags in (target, prediction)
            ]
        else:
            sides = [[(start, end, label) for start, end, label in side] for side in (target, prediction)]
        faults = list(_faults(*sides))
        causes.update(cause for cause, *_ in faults)
        confused.update(
            (true[2], given[2]) for cause, true, given in faults if cause == "other label" and true and given
        )
        for cause in dict.fromkeys(cause for cause, *_ in faults):
            if len(examples[cause]) < _EXAMPLES:
                examples[cause].append(_entry(text, sides, [fault for fault in faults if fault[0] == cause]))
    if causes:
        text = "In the texts, true spans are green, predicted ones red and underlined." if spans else ""
        yield Section("Errors", tuple(_errors(causes, confused, examples)), text)


def _table(labels: Sequence[str], totals: np.ndarray, spans: bool) -> Table:
    """totals: (labels, 3): right, predicted, true."""
    rows = []
    for place in np.argsort(-totals[:, 2], kind="stable").tolist():
        right, given, true = totals[place].tolist()
        scores = (
            right / given if given else None,
            right / true if true else None,
            2 * right / (given + true) if given + true else None,
        )
        rows.append((labels[place], *map(formatting.percent, scores), formatting.count(true), formatting.count(given)))
    head = ("label", "precision", "recall", "F1", "spans" if spans else "words", "predicted")
    note = "A span is correct if both ends and the label are." if spans else ""
    title = f"Scores of {len(rows):,} labels"
    return Table(title, head, tuple(rows), "krrrrr", note, folded=len(rows) > _UNFOLDED)


def _places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """The spans of the words in a text, in order."""
    places: list[tuple[int, int]] = []
    for word in words:
        start = text.index(word, places[-1][1] if places else 0)
        places.append((start, start + len(word)))
    return places


def _faults(true: Sequence[Span], given: Sequence[Span]) -> Iterator[tuple[str, Span | None, Span | None]]:
    """Yields (cause, true span, predicted span). Each span is part of one fault at most."""
    wrong = [span for span in given if span not in set(true)]
    for span in true:
        if span in set(given):
            continue
        over = [other for other in wrong if other[0] < span[1] and span[0] < other[1]]
        other = next((other for other in over if other[:2] == span[:2]), over[0] if over else None)
        if other is None:
            yield "missed", span, None
            continue
        wrong.remove(other)
        yield "other label" if other[:2] == span[:2] else "other ends", span, other
    for other in wrong:
        yield "invented", None, other


def _entry(text: str, sides: Sequence[Sequence[Span]], faults: Sequence[Any]) -> Entry:
    """The text around the first fault, with true and predicted spans."""
    first = min(span[0] for _, *both in faults for span in both if span)
    start = max(0, first - _WINDOW_CHARS // 2) if len(text) > _WINDOW_CHARS else 0
    shown = text[start : start + _WINDOW_CHARS]
    wrong = [{span for _, *both in faults for span in both[side : side + 1] if span} for side in (0, 1)]
    passage = [
        *([("… ", ())] if start else []),
        *marked(shown, {"right": list(wrong[0]), "given": list(wrong[1])}, start),
        *([(" …", ())] if start + len(shown) < len(text) else []),
    ]
    facts = tuple(
        (name, ", ".join(f"{text[span[0] : span[1]]} ({span[2]})" for span in sorted(own)))
        for name, own in zip(("true", "predicted"), wrong, strict=True)
        if own
    )
    return Entry("", "", facts, tuple(passage))


def _errors(
    causes: Counter[str], confused: Counter[tuple[str, str]], examples: dict[str, list[Entry]]
) -> Iterator[Element]:
    total, most = causes.total(), max(causes.values())
    bars = tuple(
        Bar(cause, (number / most,), f"{formatting.count(number)}, {formatting.percent(number / total)}")
        for cause, number in causes.most_common()
    )
    note = "; ".join(f"{cause}: {_CAUSES[cause]}" for cause, _ in causes.most_common())
    if len(bars) > 1:
        yield Bars("Errors by cause", bars, note=f"{note}.")
    if confused:
        rows = tuple((*pair, formatting.count(number)) for pair, number in confused.most_common(_CONFUSIONS))
        yield Table("Most frequent confusions", ("true label", "predicted", "number"), rows, "kkr")
    for place, (cause, number) in enumerate(causes.most_common()):
        title = f"{cause} · {formatting.count(number)}, {len(examples[cause])} texts shown"
        yield Folded(title, tuple(examples[cause]), open=place == 0)
