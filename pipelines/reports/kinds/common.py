"""Shared by the pages of tasks: scores on one scale, learning curves, calibration, groups by length."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Interval, Intervals
from pipelines.reports.pictures import Line, curves
from pipelines.reports.record import Artifact

__all__ = [
    "Scored",
    "Series",
    "beginning",
    "by_length",
    "calibration",
    "colour_of",
    "is_share",
    "known",
    "marked",
    "model_name",
    "on_one_scale",
    "run_name",
    "score_text",
    "training_curves",
    "without_folders",
]

_NAMES = {
    "pretrained": "pretrained",
    "scratch": "not pretrained",
    "tfidf": "TF-IDF baseline",
    "majority": "majority baseline",
    "mean": "mean baseline",
    "dictionary": "dictionary baseline",
    "sentence": "nearest sentence baseline",
    "no_answer": "no answer baseline",
}
_COLOURS = {"pretrained": 1, "scratch": 2, "tfidf": 3}
_BINS = 10  # of the predicted probability
_GROUPS = 5  # of texts by length
_NO_SHARES = ("pearson", "spearman", "matthews", "mae")  # correlations and an error; all other metrics are shares
_SHOWN_CHARS = 600  # of a text
_FOLDERS = re.compile(r"(?<![\w/])/(?:[^/\n:;,]+/)+")


def model_name(name: str) -> str:
    """The display name of a model in scores.json."""
    return _NAMES.get(name, name)


def colour_of(name: str) -> int:
    return _COLOURS.get(name, 4)


def known(score: Any) -> bool:
    """Whether a score is defined: undefined ones are None or NaN."""
    return isinstance(score, int | float) and math.isfinite(score)


def is_share(metric: str) -> bool:
    """Whether a metric is shown in percent."""
    return metric not in _NO_SHARES


def score_text(metric: str, score: Any, places: int = 1) -> str:
    """0.5124 -> 51.2 %, or 0.512 for a correlation; undefined -> a dash."""
    if not known(score):
        return formatting.decimal(None)
    return formatting.percent(score, places) if is_share(metric) else formatting.decimal(score, places + 2)


class Scored(NamedTuple):
    """A score and its interval. text: the figure at the end of its row."""

    label: str
    at: float
    low: float
    high: float
    text: str
    colour: int


def on_one_scale(
    title: str,
    scores: Sequence[Scored],
    *,
    lowest: float = 0.0,
    end: Callable[[float], str] = lambda value: formatting.percent(value, 0),
    note: str = "",
) -> Intervals:
    """Scores up to 1, on a scale that begins and ends at multiples of 0.05. lowest: minimum of the metric."""
    low, high = min(score.low for score in scores), max(score.high for score in scores)
    left = max(lowest, min(math.floor(20 * low) / 20, 0.95))
    right = min(1.0, max(math.ceil(20 * high) / 20, left + 0.05))

    def place(value: float) -> float:
        return min(1.0, max(0.0, (value - left) / (right - left)))

    rows = tuple(
        Interval(score.label, place(score.at), place(score.low), place(score.high), score.text, score.colour)
        for score in scores
    )
    return Intervals(title, rows, end(left), end(right), note)


def calibration(
    probabilities: Sequence[float] | np.ndarray, outcomes: Sequence[bool] | np.ndarray, *, x: str, y: str
) -> Iterator[Element]:
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
    mean = np.bincount(bins, probabilities, _BINS)[filled] / sizes[filled]
    happened = np.bincount(bins, outcomes, _BINS)[filled] / sizes[filled]
    yield curves(
        "Calibration",
        [
            Line("measured", mean.tolist(), happened.tolist()),
            Line("perfectly calibrated", [0, 1], [0, 1], reference=True),
        ],
        x=x,
        y=y,
        percent=True,
        whole=False,
        note="Above the dashed line, predicted probabilities are too low; below it, too high.",
    )


class Series(NamedTuple):
    """A quantity to draw, from the lines of one kind in metrics/*.jsonl. y: its unit or name, above the axis."""

    title: str
    kind: str
    key: str
    y: str
    percent: bool = False


def training_curves(artifact: Artifact, series: Iterable[Series], stems: Iterable[str] = ()) -> Iterator[Element]:
    """A chart per series with a line per training. stems: of the files to draw; empty: all."""
    wanted = set(stems)
    paths = [path for path in artifact.parts("metrics/*.jsonl") if not wanted or path.stem in wanted]
    runs = {run_name(path.stem): artifact.lines(f"metrics/{path.name}") for path in paths}
    for title, kind, key, y, percent in series:
        lines = []
        for name, metrics in runs.items():
            points = [(row["step"], row[key]) for row in metrics if row["kind"] == kind and known(row.get(key))]
            if points:
                lines.append(Line(name, [step for step, _ in points], [value for _, value in points]))
        if lines:
            yield curves(title, lines, x="step", y=y, percent=percent)


def run_name(stem: str) -> str:
    """The display name of a metrics file: scratch-rate-0.0005-seed-0 -> not pretrained, rate 0.0005, seed 0."""
    name, *choices = stem.split("-rate-", 1)
    words = (choice.replace("-batch-", ", batch ").replace("-epochs-", ", epochs ") for choice in choices)
    return ", ".join([model_name(name), *("rate " + choice.replace("-seed-", ", seed ") for choice in words)])


def by_length(title: str, lengths: np.ndarray, right: np.ndarray, *, what: str) -> Bars:
    """Share of correct texts in about five groups of equal size, short to long.

    lengths: (N,) characters, N at least 1. right: (N,) from 0 to 1. what: word for the texts.
    """
    ends = np.unique(np.quantile(lengths, np.linspace(0, 1, _GROUPS + 1)[1:], method="higher"))
    group = np.searchsorted(ends, lengths)
    bars = []
    for number in range(len(ends)):
        inside = group == number
        first, last, share = lengths[inside].min(), lengths[inside].max(), float(right[inside].mean())
        span = formatting.count(first) if first == last else f"{formatting.count(first)}–{formatting.count(last)}"
        text = f"{formatting.percent(share)} of {formatting.count(inside.sum())}"
        bars.append(Bar(f"{span} characters", (share,), text))
    return Bars(title, tuple(bars), note=f"Groups with about the same number of {what}.")


def beginning(text: str) -> str:
    """A text for display in an example, truncated if long."""
    if not text.strip():
        return "(empty)"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]} …"


def without_folders(text: str) -> str:
    """The text with absolute paths reduced to file names: /home/me/a.csv -> a.csv."""
    return _FOLDERS.sub("", text)


def marked(
    text: str, spans: Mapping[str, Sequence[Sequence[int]]], start: int = 0
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Splits a text where spans begin or end; each stretch comes with the names of the spans that cover it.

    spans: name -> half-open spans. start: offset of the first character of the text.
    """
    places = {place for own in spans.values() for span in own for place in span[:2]}
    bounds = [start, *sorted(place for place in places if start < place < start + len(text)), start + len(text)]
    for low, high in itertools.pairwise(bounds):
        names = (name for name, own in spans.items() if any(span[0] <= low and high <= span[1] for span in own))
        yield text[low - start : high - start], tuple(names)
