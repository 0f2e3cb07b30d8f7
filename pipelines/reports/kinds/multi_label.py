"""Several labels per text: F1 by label, calibration, exact matches by length, texts with most errors."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Entry, Section, Table
from pipelines.reports.kinds.common import Predicted, beginning, by_length, calibration, f1, worst

__all__ = ["sections"]

_BARS = 30  # labels with bars; with more, a table


def sections(kind: Any, predicted: Predicted, details: Json) -> Iterator[Section]:
    lengths, true, chosen, probabilities = [], [], [], []
    errors: list[tuple[int, Entry]] = []
    for row, prediction in predicted:
        texts, sides = kind.texts(row), (set(kind.target(row)), set(prediction["labels"]))
        lengths.append(sum(map(len, texts)))
        true.append([label in sides[0] for label in kind.labels])
        chosen.append([label in sides[1] for label in kind.labels])
        probabilities.append([prediction["probabilities"][label] for label in kind.labels])
        if sides[0] != sides[1]:
            names = [", ".join(label for label in kind.labels if label in side) or "none" for side in sides]
            facts = (("true", names[0]), ("predicted", names[1]))
            errors.append((len(sides[0] ^ sides[1]), Entry("", beginning(*texts), facts)))
    if not lengths:
        return
    targets, labels = np.array(true), np.array(chosen)
    totals = np.stack([(targets & labels).sum(axis=0), labels.sum(axis=0), targets.sum(axis=0)], axis=1)
    yield Section("F1 by label", [f1_by_label(kind.labels, totals)])
    reliability = calibration(
        np.ravel(probabilities), targets.ravel(), x="probability of a label", y="share that is true"
    )
    exact = by_length("All labels correct, by length", lengths, (targets == labels).all(axis=1), what="texts")
    yield Section("Calibration and length", [*reliability, exact])
    errors.sort(key=lambda error: -error[0])
    yield from worst("Texts with the most wrong labels", [entry for _, entry in errors], "")


def f1_by_label(labels: Sequence[str], totals: np.ndarray) -> Bars | Table:
    """totals: (labels, 3): right, predicted, true."""
    title = f"Scores of {len(labels):,} labels"
    ordered = [(labels[index], *totals[index].tolist()) for index in np.argsort(-totals[:, 2], kind="stable")]
    scored = [(label, f1(*numbers), *numbers) for label, *numbers in ordered]
    if len(labels) <= _BARS:
        bars = [
            Bar(label, (score or 0.0,), f"{formatting.percent(score)}, {formatting.count(true)} rows")
            for label, score, _, _, true in scored
        ]
        return Bars(title, bars, korean=True, note="F1, most frequent label first. A dash: never true nor predicted.")
    rows = [
        (label, formatting.percent(score), *map(formatting.count, (true, predicted, right)))
        for label, score, right, predicted, true in scored
    ]
    return Table(title, ("label", "F1", "true", "predicted", "both"), rows, "krrrr", folded=True)
