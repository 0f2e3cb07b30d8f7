"""One number per text: target against prediction, errors by target and by length, largest errors."""

from collections.abc import Callable, Iterator

import numpy as np

from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.distributions import equal_groups
from korbert.pipelines.reports.elements import Section, Table
from korbert.pipelines.reports.kinds.common import Scored
from korbert.pipelines.reports.pictures import scatter


def sections(scored: Scored, details: Json) -> Iterator[Section]:
    predictions = np.array(scored.predictions, dtype=float)
    finite = np.isfinite(predictions)
    if not finite.any():
        return
    targets = np.array([scored.kind.target(row) for row in scored.rows], dtype=float)
    errors = predictions - targets
    shown = targets[finite], predictions[finite]
    note = "On the dashed line, both are equal. Each dot is a row."
    elements = [
        scatter("Prediction against target", *shown, x="target", y="prediction", note=note),
        errors_by("Error by target", targets[finite], errors[finite], "target", lambda x: formatting.decimal(x, 1)),
        errors_by("Error by length", scored.lengths()[finite], errors[finite], "characters", formatting.count),
    ]
    yield Section("Errors", elements)
    largest = [index for index in np.argsort(-abs(errors), kind="stable").tolist() if finite[index]]
    yield from scored.worst("Largest errors", largest, " rows")


def errors_by(title: str, values: np.ndarray, errors: np.ndarray, what: str, show: Callable[[float], str]) -> Table:
    rows = []
    for span, inside in equal_groups(values, show):
        mean = f"{errors[inside].mean():+.2f}"
        rows.append((span, formatting.count(inside.sum()), formatting.decimal(float(abs(errors[inside]).mean())), mean))
    note = "Mean error above 0: predicted too high."
    return Table(title, (what, "rows", "mean absolute error", "mean error"), rows, "rrrr", note=note)
