"""The page of `nsmc`: accuracy with its baselines, confusion matrix, calibration, most confident errors."""

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

_ERRORS = 20  # of each label
_BINS = 10  # of the predicted probability
_NAMES = {"pretrained": "pretrained", "scratch": "not pretrained", "tfidf": "TF-IDF baseline"}
_COLOURS = {"pretrained": 1, "scratch": 2, "tfidf": 3}
_LABELS = ("negative", "positive")


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    models = artifact.json("scores.json")["rows"]
    return tuple(
        Headline(
            formatting.percent(model["test"]["all"]["accuracy"]),
            _name(model),
            f"± {formatting.percent(model['test']['all']['standard_error'], 2)}",
        )
        for model in _first_seeds(models).values()
    )


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    predictions = _read_predictions(artifact)
    title = _title(scores["rows"])
    counts = [f"{formatting.count(number)} {label(name)}" for name, number in scores["counts"].items()]
    return Story(
        title=title,
        lede=f"{', '.join(counts)}. {scores.get('note') or ''}".rstrip(),
        sections=(
            Section("Test accuracy", tuple(_accuracies(scores["rows"]))),
            Section("Confusion and calibration", tuple(_confusion(scores["confusion"], predictions))),
            Section("Training", tuple(_curves(artifact))),
            Section(
                "Most confident errors",
                tuple(_errors(predictions)),
                "Errors of the first model above, with the probability that it gave the wrong label.",
            ),
        ),
    )


def _first_seeds(models: list[Json]) -> dict[str, Json]:
    """Name -> the model of that name with the first seed."""
    first: dict[str, Json] = {}
    for model in models:
        first.setdefault(model["name"], model)
    return first


def _title(models: list[Json]) -> str:
    accuracy = {name: model["test"]["all"]["accuracy"] for name, model in _first_seeds(models).items()}
    main = models[0]["name"]
    if "tfidf" not in accuracy or main == "tfidf":
        return f"{formatting.percent(accuracy[main])} of reviews classified correctly"
    points = 100 * (accuracy[main] - accuracy["tfidf"])
    if abs(points) < 0.05:
        return "As accurate as the TF-IDF baseline"
    side = "above" if points > 0 else "below"
    return f"{formatting.decimal(abs(points), 1)} percentage points {side} the TF-IDF baseline"


def _accuracies(models: list[Json]) -> Iterator[Element]:
    for part, title in (("all", "All test reviews"), ("unseen", "Unseen test reviews")):
        if all(model["test"][part]["count"] for model in models):
            yield _intervals(models, part, title)
    rows = []
    for model in models:
        rate, epoch = model.get("learning_rate", model.get("c")), model.get("epoch")
        rows.append(
            (
                _name(model),
                "" if model.get("seed") is None else str(model["seed"]),
                "" if rate is None else f"{rate:g}",
                "" if epoch is None else f"{epoch:g}",
                formatting.percent(model["validation_accuracy"], 2),
            )
        )
    yield Table(
        "Selected on validation accuracy",
        ("model", "seed", "learning rate or C", "epoch", "validation"),
        tuple(rows),
        "lrrrr",
        note="Not pretrained: the same encoder, randomly initialized. TF-IDF: morpheme features, logistic regression. "
        "The test set was scored once per seed.",
    )


def _intervals(models: list[Json], part: str, title: str) -> Intervals:
    """Accuracies ± one standard error, on a scale that begins and ends at multiples of 5 %."""
    scores = [model["test"][part] for model in models]
    low = min(score["accuracy"] - score["standard_error"] for score in scores)
    high = max(score["accuracy"] + score["standard_error"] for score in scores)
    left = max(0.0, min(math.floor(20 * low) / 20, 0.95))
    right = min(1.0, max(math.ceil(20 * high) / 20, left + 0.05))

    names = [model["name"] for model in models]
    intervals = []
    for model, score in zip(models, scores, strict=True):
        accuracy, error = score["accuracy"], score["standard_error"]
        at, start, end = (
            min(1.0, max(0.0, (value - left) / (right - left)))
            for value in (accuracy, accuracy - error, accuracy + error)
        )
        name = _name(model) + (f", seed {model['seed']}" if names.count(model["name"]) > 1 else "")
        text = f"{formatting.percent(accuracy, 2)} ± {formatting.decimal(100 * error)}"
        intervals.append(Interval(name, at, start, end, text, _COLOURS.get(model["name"], 4)))
    note = f"{formatting.count(scores[0]['count'])} reviews. Whiskers: ± one standard error."
    return Intervals(title, tuple(intervals), formatting.percent(left, 0), formatting.percent(right, 0), note)


def _name(model: Json) -> str:
    return _NAMES.get(str(model["name"]), str(model["name"]))


@dataclass(frozen=True)
class _Predictions:
    """Of the first model. errors: the most confident ones, at most 20 per label. The arrays: (N,), one per review."""

    errors: list[dict[str, Any]]
    labels: np.ndarray  # 0 or 1
    probability: np.ndarray  # of label 1


def _read_predictions(artifact: Artifact) -> _Predictions:
    labels: list[np.ndarray] = []
    probabilities: list[np.ndarray] = []
    errors: dict[int, list[dict[str, Any]]] = {0: [], 1: []}
    parts = artifact.parts("predictions.parquet")
    for batch in batches(parts, ["id", "text", "label", "prediction", "probability"]):
        labels.append(batch.column("label").to_numpy(zero_copy_only=False))
        probabilities.append(batch.column("probability").to_numpy(zero_copy_only=False))
        for row in batch.to_pylist():
            if row["label"] != row["prediction"]:
                errors[row["label"]].append(row)
        for wrong in errors.values():
            wrong.sort(key=lambda row: (-abs(row["probability"] - 0.5), str(row["id"])))
            del wrong[_ERRORS:]
    joined = (np.concatenate(arrays) if arrays else np.empty(0) for arrays in (labels, probabilities))
    return _Predictions(errors[0] + errors[1], *joined)


def _confusion(counts: list[list[int]], predictions: _Predictions) -> Iterator[Element]:
    """counts: [label][prediction]."""
    cells = tuple(
        tuple((formatting.count(number), formatting.ratio(number, sum(row))) for number in row) for row in counts
    )
    yield Matrix(
        "Confusion matrix", _LABELS, _LABELS, cells, "Rows: true labels. Columns: predictions. Shares are of the row."
    )
    if not predictions.labels.size:
        return

    # Reliability diagram: mean prediction and share of positives in ten bins. Empty bins are left out.
    bins = np.minimum((predictions.probability * _BINS).astype(int), _BINS - 1)
    sizes = np.bincount(bins, minlength=_BINS)
    filled = np.flatnonzero(sizes)
    mean = np.bincount(bins, predictions.probability, _BINS)[filled] / sizes[filled]
    positive = np.bincount(bins, predictions.labels, _BINS)[filled] / sizes[filled]
    yield curves(
        "Calibration",
        [
            Line("measured", mean.tolist(), positive.tolist()),
            Line("perfectly calibrated", [0, 1], [0, 1], reference=True),
        ],
        x="predicted probability of positive",
        y="share of positives",
        percent=True,
        whole=False,
        note="Above the dashed line, predicted probabilities are too low; below it, too high.",
    )


def _curves(artifact: Artifact) -> Iterator[Element]:
    runs = {_run_name(path.stem): artifact.lines(f"metrics/{path.name}") for path in artifact.parts("metrics/*.jsonl")}
    for title, kind, key, y, percent in (
        ("Validation accuracy", "heldout", "accuracy", "accuracy", True),
        ("Training loss", "train", "loss", "nats", False),
    ):
        lines = []
        for name, metrics in runs.items():
            points = [(row["step"], row[key]) for row in metrics if row["kind"] == kind and key in row]
            if points:
                lines.append(Line(name, [step for step, _ in points], [value for _, value in points]))
        if lines:
            yield curves(title, lines, x="step", y=y, percent=percent)


def _run_name(stem: str) -> str:
    """The name of a run's metrics file in words: scratch-rate-0.0005-seed-0 -> not pretrained, rate 0.0005, seed 0."""
    name, *choices = stem.split("-rate-", 1)
    return ", ".join([_NAMES.get(name, name), *("rate " + choice.replace("-seed-", ", seed ") for choice in choices)])


def _errors(predictions: _Predictions) -> Iterator[Element]:
    for truth, name in enumerate(_LABELS):
        entries = []
        for row in predictions.errors:
            if row["label"] == truth:
                confidence = row["probability"] if row["prediction"] == 1 else 1 - row["probability"]
                facts = (
                    (formatting.percent(confidence, 1), _LABELS[int(row["prediction"])]),
                    ("id", str(row["id"])),
                )
                entries.append(Entry("", row["text"] or "(empty)", facts))
        if entries:
            title = f"{name} reviews predicted as {_LABELS[1 - truth]} · {len(entries)}"
            yield Folded(title, tuple(entries), open=True)
