"""The page of `nsmc`: the table with its baselines, what is confused with what, the errors it was surest of."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.artifacts import Json
from pipelines.reports import formatting
from pipelines.reports.elements import (
    Element,
    Entry,
    Folded,
    Headline,
    Interval,
    Intervals,
    Matrix,
    Section,
    Story,
    Table,
)
from pipelines.reports.labels import label
from pipelines.reports.pictures import Line, curves
from pipelines.reports.record import Artifact, batches
from pipelines.reports.usage import Use

__all__ = ["headlines", "story"]

USE = Use(
    "model",
    "korbert predict {} reviews.txt",
    "import korbert\nclassifier = korbert.load({})\nprint(classifier.predict(['정말 재미있는 영화였다'])[0]['label'])",
)

_ERRORS = 20  # of each kind
_BINS = 10  # of the predicted probability
_NAMES = {"pretrained": "pretrained", "scratch": "not pretrained", "tfidf": "TF-IDF baseline"}
_COLOURS = {"pretrained": 1, "scratch": 2, "tfidf": 3}
_LABELS = ("negative", "positive")
_ROWS_NOTE = (
    "Not pretrained: the same encoder from untrained weights. TF-IDF: morphemes, logistic regression. The test set was "
    "scored once a seed."
)


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    rows = artifact.json("scores.json")["rows"]
    return tuple(
        Headline(
            formatting.percent(row["test"]["all"]["accuracy"]),
            _name(row),
            f"± {formatting.percent(row['test']['all']['standard_error'], 2)}",
        )
        for row in _first_of_each(rows).values()
    )


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    predicted = _read(artifact)
    return Story(
        title=_title(scores["rows"]),
        lede=_lede(scores),
        sections=(
            Section("Accuracy on the test set", tuple(_tables(scores))),
            Section("Right and wrong", tuple(_confusion(scores, predicted))),
            Section("While learning", tuple(_curves(artifact))),
            Section(
                "The most confident errors",
                tuple(_errors(predicted)),
                "Of the main row, with the probability given to the wrong label.",
            ),
        ),
    )


def _first_of_each(rows: list[Json]) -> dict[str, Json]:
    """The first row of each name: the one with the first seed."""
    found: dict[str, Json] = {}
    for row in rows:
        found.setdefault(row["name"], row)
    return found


def _title(rows: list[Json]) -> str:
    accuracy = {name: row["test"]["all"]["accuracy"] for name, row in _first_of_each(rows).items()}
    main = rows[0]["name"]
    if "tfidf" not in accuracy or main == "tfidf":
        return f"{formatting.percent(accuracy[main])} of the reviews are classified correctly"
    points = 100 * (accuracy[main] - accuracy["tfidf"])
    if abs(points) < 0.05:
        return "As accurate as the TF-IDF baseline"
    return f"{formatting.decimal(abs(points), 1)} points {'above' if points > 0 else 'below'} the TF-IDF baseline"


def _lede(scores: Json) -> str:
    parts = [f"{formatting.count(number)} {label(name)}" for name, number in scores["counts"].items()]
    return f"{', '.join(parts)}. {scores.get('note') or ''}".rstrip()


def _tables(scores: Json) -> Iterator[Element]:
    for part, title in (("all", "All test reviews"), ("unseen", "Test reviews whose text was seen nowhere before")):
        if all(row["test"][part]["count"] for row in scores["rows"]):
            yield _intervals(scores["rows"], part, title)
    yield Table(
        "Chosen by validation accuracy",
        ("row", "seed", "rate or C", "epoch", "validation"),
        tuple(_row(row) for row in scores["rows"]),
        "lrrrr",
        note=_ROWS_NOTE,
    )


def _row(row: Json) -> tuple[str, ...]:
    rate = row.get("learning_rate", row.get("c"))
    epoch = row.get("epoch")
    return (
        _name(row),
        "" if row.get("seed") is None else str(row["seed"]),
        "" if rate is None else f"{rate:g}",
        "" if epoch is None else f"{epoch:g}",
        formatting.percent(row["validation_accuracy"], 2),
    )


def _measured(part: Json) -> str:
    return f"{formatting.percent(part['accuracy'], 2)} ± {formatting.decimal(100 * part['standard_error'])}"


def _intervals(rows: list[Json], part: str, title: str) -> Intervals:
    scale = _Scale.around([row["test"][part] for row in rows])
    intervals = tuple(
        Interval(
            _name(row) + (f", seed {row['seed']}" if _repeated(rows, row["name"]) else ""),
            scale.place(row["test"][part]["accuracy"]),
            scale.place(row["test"][part]["accuracy"] - row["test"][part]["standard_error"]),
            scale.place(row["test"][part]["accuracy"] + row["test"][part]["standard_error"]),
            _measured(row["test"][part]),
            _COLOURS.get(row["name"], 4),
        )
        for row in rows
    )
    note = f"{formatting.count(rows[0]['test'][part]['count'])} reviews. Whiskers: one standard error to each side."
    return Intervals(title, intervals, formatting.percent(scale.left, 0), formatting.percent(scale.right, 0), note)


@dataclass(frozen=True)
class _Scale:
    """From one accuracy to another, both whole twentieths."""

    left: float
    right: float

    @classmethod
    def around(cls, parts: list[Json]) -> "_Scale":
        low = min(part["accuracy"] - part["standard_error"] for part in parts)
        high = max(part["accuracy"] + part["standard_error"] for part in parts)
        left = max(0.0, min(math.floor(20 * low) / 20, 0.95))
        return cls(left, min(1.0, max(math.ceil(20 * high) / 20, left + 0.05)))

    def place(self, accuracy: float) -> float:
        """Where an accuracy stands on the scale, 0 to 1."""
        return min(1.0, max(0.0, (accuracy - self.left) / (self.right - self.left)))


def _name(row: Json) -> str:
    return _NAMES.get(str(row["name"]), str(row["name"]))


def _repeated(rows: list[Json], name: str) -> bool:
    """Whether there is a row of that name for more than one seed."""
    return len([row for row in rows if row["name"] == name]) > 1


@dataclass(frozen=True)
class _Predicted:
    """Predictions of the main row. probability: (N,) of the label 1; labels, predictions: (N,) 0 or 1."""

    rows: list[dict[str, Any]]  # the errors it was surest of, the surest first, at most 20 for each label
    labels: np.ndarray
    predictions: np.ndarray
    probability: np.ndarray


def _read(artifact: Artifact) -> _Predicted:
    parts = artifact.parts("predictions.parquet")
    numbers: dict[str, list[np.ndarray]] = {"label": [], "prediction": [], "probability": []}
    surest: dict[int, list[dict[str, Any]]] = {0: [], 1: []}
    for batch in batches(parts, ["id", "text", "label", "prediction", "probability"]):
        for name, found in numbers.items():
            found.append(batch.column(name).to_numpy(zero_copy_only=False))
        for row in batch.to_pylist():
            if row["label"] != row["prediction"]:
                surest[row["label"]].append(row)
        surest = {label: sorted(rows, key=_doubt)[:_ERRORS] for label, rows in surest.items()}
    joined = [np.concatenate(found) if found else np.empty(0) for found in numbers.values()]
    return _Predicted(surest[0] + surest[1], *joined)


def _doubt(row: dict[str, Any]) -> tuple[float, str]:
    return -abs(row["probability"] - 0.5), str(row["id"])


def _confusion(scores: Json, predicted: _Predicted) -> Iterator[Element]:
    rows = scores["confusion"]
    cells = tuple(
        tuple((formatting.count(number), formatting.ratio(number, sum(row))) for number in row) for row in rows
    )
    yield Matrix(
        "Confusion", _LABELS, _LABELS, cells, "Rows are the labels, columns the predictions; shares are of the row."
    )
    if predicted.labels.size:
        yield _reliability(predicted)


def _reliability(predicted: _Predicted) -> Element:
    """Share of positive reviews over the probability given for it, in ten bins; empty bins are left out."""
    bins = np.minimum((predicted.probability * _BINS).astype(int), _BINS - 1)
    sizes = np.bincount(bins, minlength=_BINS)
    shown = np.flatnonzero(sizes)
    mean = np.bincount(bins, predicted.probability, _BINS)[shown] / sizes[shown]
    right = np.bincount(bins, predicted.labels, _BINS)[shown] / sizes[shown]
    return curves(
        "Calibration",
        [Line("measured", mean.tolist(), right.tolist()), Line("perfectly calibrated", [0, 1], [0, 1], reference=True)],
        x="probability given for positive",
        y="share that is positive",
        percent=True,
        whole=False,
        note="Above the dashed line the probability is too low, below it too high.",
    )


def _curves(artifact: Artifact) -> Iterator[Element]:
    found = {path.stem: artifact.lines(f"metrics/{path.name}") for path in artifact.parts("metrics/*.jsonl")}
    for title, kind, key, y, percent in (
        ("Validation accuracy", "heldout", "accuracy", "share right", True),
        ("Training loss", "train", "loss", "nats", False),
    ):
        lines = [_line(_training(name), rows, kind, key) for name, rows in found.items()]
        lines = [line for line in lines if line.x]
        if lines:
            yield curves(title, lines, x="step", y=y, percent=percent)


def _training(stem: str) -> str:
    """The name of a training's file in words: scratch-rate-0.0005-seed-0 -> not pretrained, rate 0.0005, seed 0."""
    name, *choices = stem.split("-rate-", 1)
    return ", ".join([_NAMES.get(name, name), *("rate " + one.replace("-seed-", ", seed ") for one in choices)])


def _line(name: str, rows: list[Json], kind: str, key: str) -> Line:
    points = [(row["step"], row[key]) for row in rows if row["kind"] == kind and key in row]
    return Line(name, [step for step, _ in points], [value for _, value in points])


def _errors(predicted: _Predicted) -> Iterator[Element]:
    for truth, name in enumerate(_LABELS):
        entries = tuple(_entry(row) for row in predicted.rows if row["label"] == truth)
        if entries:
            yield Folded(f"{name} reviews taken for {_LABELS[1 - truth]} · {len(entries)}", entries, open=True)


def _entry(row: dict[str, Any]) -> Entry:
    sure = row["probability"] if row["prediction"] == 1 else 1 - row["probability"]
    return Entry(
        "",
        row["text"] or "(empty)",
        ((formatting.percent(sure, 1), _LABELS[int(row["prediction"])]), ("id", str(row["id"]))),
    )
