"""One number per text: target against prediction, largest errors."""

from collections.abc import Iterator

import numpy as np

from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports.elements import Section
from korbert.pipelines.reports.kinds.common import Scored
from korbert.pipelines.reports.pictures import scatter


def sections(scored: Scored, details: Json) -> Iterator[Section]:
    predictions = np.array(scored.predictions, dtype=float)
    finite = np.isfinite(predictions)
    if not finite.any():
        return
    targets = np.array([scored.kind.target(row) for row in scored.rows], dtype=float)
    shown = targets[finite], predictions[finite]
    note = "On the dashed line, both are equal. Each dot is a row."
    yield Section("Errors", [scatter("Prediction against target", *shown, x="target", y="prediction", note=note)])
    errors = predictions - targets
    largest = [index for index in np.argsort(-abs(errors), kind="stable").tolist() if finite[index]]
    yield from scored.worst("Largest errors", largest, " rows")
