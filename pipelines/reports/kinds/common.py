"""What the pages of several kinds of tasks show: calibration, scores by label and by length, examples of errors."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pipelines.reports import formatting
from pipelines.reports.distributions import equal_groups
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Marked, Section, Table
from pipelines.reports.pictures import Line, curves

__all__ = ["Predicted", "beginning", "by_length", "calibration", "f1", "label_scores", "marked", "worst"]

Predicted = Iterable[tuple[dict[str, Any], Any]]
"""Each scored row with its prediction."""

_BINS = 10  # of the predicted probability
_SHOWN_CHARS = 600  # of a text
_ERRORS = 20  # shown
_UNFOLDED = 20  # rows of a table


def calibration(probabilities: Any, outcomes: Any, *, x: str, y: str) -> Iterator[Element]:
    """Reliability diagram: mean prediction and share of outcomes in ten bins. Empty bins are left out.

    probabilities: (N,) from 0 to 1; without a finite one, no diagram. outcomes: (N,) bool or 0 and 1, whether the event
    occurred.
    """
    finite = np.isfinite(probabilities)
    if not finite.any():
        return
    probabilities, outcomes = np.asarray(probabilities)[finite].clip(0, 1), np.asarray(outcomes)[finite]
    bins = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    sizes = np.bincount(bins, minlength=_BINS)
    filled = np.flatnonzero(sizes)
    mean, occurred = (np.bincount(bins, each, _BINS)[filled] / sizes[filled] for each in (probabilities, outcomes))
    lines = [
        Line("measured", mean.tolist(), occurred.tolist()),
        Line("perfectly calibrated", [0, 1], [0, 1], reference=True),
    ]
    note = "Above the dashed line, predicted probabilities are too low; below it, too high."
    yield curves("Calibration", lines, x=x, y=y, percent=True, whole=False, note=note)


def by_length(title: str, lengths: Sequence[int], right: Sequence[bool], *, what: str) -> Bars:
    """Share of correct rows in about five groups of equal size, short to long.

    lengths: of each row in characters, at least one. right: whether its prediction is. what: word for the rows.
    """
    bars = []
    for span, inside in equal_groups(np.array(lengths), formatting.count):
        share = float(np.asarray(right)[inside].mean())
        text = f"{formatting.percent(share)} of {formatting.count(inside.sum())}"
        bars.append(Bar(f"{span} characters", (share,), text))
    return Bars(title, bars, note=f"Groups with about the same number of {what}.")


def f1(right: float, predicted: float, true: float) -> float | None:
    """F1 from numbers of rows or spans; None without any."""
    return 2 * right / (predicted + true) if predicted + true else None


def label_scores(labels: Sequence[str], totals: np.ndarray, unit: str, note: str = "") -> Table:
    """Precision, recall and F1 of each label, the most frequent first. totals: (labels, 3): right, predicted, true."""
    rows = []
    for index in np.argsort(-totals[:, 2], kind="stable").tolist():
        right, predicted, true = totals[index].tolist()
        precision, recall = right / predicted if predicted else None, right / true if true else None
        scores = map(formatting.percent, (precision, recall, f1(right, predicted, true)))
        rows.append((labels[index], *scores, formatting.count(true), formatting.count(predicted)))
    head = ("label", "precision", "recall", "F1", unit, "predicted")
    title = f"Scores of {len(rows):,} labels"
    return Table(title, head, rows, "krrrrr", folded=len(rows) > _UNFOLDED, note=note)


def worst(title: str, errors: Sequence[Entry], what: str) -> Iterator[Section]:
    """The first 20 errors as a section; nothing without errors. what: word for them."""
    if errors:
        shown = errors[:_ERRORS]
        yield Section(title, [Folded(f"{len(shown)} of {len(errors):,}{what}", shown, open=True)])


def beginning(*texts: str) -> str:
    """The texts of an example, each truncated if long."""
    return "\n".join(
        "(empty)" if not text.strip() else text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]} …"
        for text in texts
    )


def marked(text: str, spans: Mapping[str, Sequence[Sequence[Any]]], start: int = 0) -> Iterator[Marked]:
    """Splits a text where spans begin or end; each stretch comes with the names of the spans that cover it.

    spans: name -> half-open spans. start: offset of the first character of the text.
    """
    inner = {end for of_name in spans.values() for span in of_name for end in span[:2]}
    bounds = [start, *sorted(end for end in inner if start < end < start + len(text)), start + len(text)]
    for low, high in itertools.pairwise(bounds):
        names = [name for name, of_name in spans.items() if any(s[0] <= low and high <= s[1] for s in of_name)]
        yield text[low - start : high - start], names
