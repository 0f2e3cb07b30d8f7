"""The page of `nsmc`: accuracy with its baselines, confusion matrix, calibration, most confident errors."""

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
    Intervals,
    Matrix,
    Section,
    Story,
    Table,
)
from pipelines.reports.evaluation import (
    Scored,
    Series,
    calibration,
    colour_of,
    model_name,
    on_one_scale,
    training_curves,
)
from pipelines.reports.labels import label
from pipelines.reports.record import Artifact, batches
from pipelines.reports.usage import Use

__all__ = ["headlines", "story"]

USE = Use(
    "model",
    "korbert predict {} reviews.txt",
    "import korbert\nclassifier = korbert.load({})\nprint(classifier.predict(['정말 재미있는 영화였다'])[0]['label'])",
)

_ERRORS = 20  # of each label
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
    accuracy = Series("Validation accuracy", "heldout", "accuracy", "accuracy", percent=True)
    loss = Series("Training loss", "train", "loss", "nats")
    counts = [f"{formatting.count(number)} {label(name)}" for name, number in scores["counts"].items()]
    return Story(
        title=title,
        lede=f"{', '.join(counts)}. {scores.get('note') or ''}".rstrip(),
        sections=(
            Section("Test accuracy", tuple(_accuracies(scores["rows"]))),
            Section("Confusion and calibration", tuple(_confusion(scores["confusion"], predictions))),
            Section("Training", tuple(training_curves(artifact, (accuracy, loss)))),
            Section(
                "Most confident errors",
                tuple(_errors(predictions)),
                "Errors of the first model above, with its probability of the wrong label.",
            ),
        ),
    )


def _first_seeds(models: list[Json]) -> dict[str, Json]:
    """Name -> the first-seed model of that name."""
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
    """Accuracies ± one standard error."""
    scores = [model["test"][part] for model in models]
    names = [model["name"] for model in models]
    rows = []
    for model, score in zip(models, scores, strict=True):
        accuracy, error = score["accuracy"], score["standard_error"]
        name = _name(model) + (f", seed {model['seed']}" if names.count(model["name"]) > 1 else "")
        text = f"{formatting.percent(accuracy, 2)} ± {formatting.decimal(100 * error)}"
        rows.append(Scored(name, accuracy, accuracy - error, accuracy + error, text, colour_of(model["name"])))
    note = f"{formatting.count(scores[0]['count'])} reviews. Whiskers: ± one standard error."
    return on_one_scale(title, rows, note=note)


def _name(model: Json) -> str:
    return model_name(str(model["name"]))


@dataclass(frozen=True)
class _Predictions:
    """Predictions of the first model. errors: most confident first, at most 20 per label. Arrays: (N,)."""

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
    yield from calibration(
        predictions.probability, predictions.labels, x="predicted probability of positive", y="share of positives"
    )


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
