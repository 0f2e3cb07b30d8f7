"""One number per text: target against prediction, errors by target and by length, largest errors."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.distributions import equal_groups
from pipelines.reports.elements import Entry, Section, Table
from pipelines.reports.kinds.common import Predicted, beginning, worst
from pipelines.reports.pictures import scatter

__all__ = ["sections"]


def sections(kind: Any, predicted: Predicted, details: Json) -> Iterator[Section]:
    rows = [(kind.target(row), number, kind.texts(row)) for row, number in predicted if np.isfinite(number)]
    if not rows:
        return
    targets, predictions = (np.array([row[side] for row in rows], dtype=float) for side in (0, 1))
    lengths = np.array([sum(map(len, texts)) for *_, texts in rows])
    errors = predictions - targets
    note = "On the dashed line, both are equal. Each dot is a row."
    elements = [
        scatter("Prediction against target", targets, predictions, x="target", y="prediction", note=note),
        errors_by("Error by target", targets, errors, "target", lambda number: formatting.decimal(number, 1)),
        errors_by("Error by length", lengths, errors, "characters", formatting.count),
    ]
    yield Section("Errors", elements)
    entries = []
    for index in np.argsort(-abs(errors), kind="stable").tolist():
        target, prediction, texts = rows[index]
        facts = (("target", formatting.decimal(target)), ("predicted", formatting.decimal(prediction)))
        entries.append(Entry("", beginning(*texts), facts))
    yield from worst("Largest errors", entries, " rows")


def errors_by(title: str, values: np.ndarray, errors: np.ndarray, what: str, show: Callable[[float], str]) -> Table:
    rows = []
    for span, inside in equal_groups(values, show):
        mean = f"{errors[inside].mean():+.2f}"
        rows.append((span, formatting.count(inside.sum()), formatting.decimal(float(abs(errors[inside]).mean())), mean))
    note = "Mean error above 0: predicted too high."
    return Table(title, (what, "rows", "mean absolute error", "mean error"), rows, "rrrr", note=note)
