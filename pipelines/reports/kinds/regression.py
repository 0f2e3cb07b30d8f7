"""One number per text: target against prediction, largest errors."""

from collections.abc import Iterator

import numpy as np

from korbert.messages import Message
from korbert.pipelines.reports.drawing import Section, scatter
from korbert.pipelines.reports.kinds.common import ScoredRows
from korbert.system import JsonObject


def sections(scored: ScoredRows, details: JsonObject) -> Iterator[Section]:
    predictions = np.array(scored.predictions, dtype=float)
    finite = np.isfinite(predictions)
    if not finite.any():
        return
    targets = np.array([scored.kind.target(row) for row in scored.rows], dtype=float)
    picture = scatter(
        Message("Prediction against target"),
        targets[finite],
        predictions[finite],
        x=Message("target"),
        y=Message("prediction"),
        note=Message("On the dashed line, both are equal. Each dot is a row."),
    )
    yield Section(Message("Errors"), [picture])
    errors = predictions - targets
    largest = [index for index in np.argsort(-abs(errors), kind="stable").tolist() if finite[index]]
    yield from scored.worst(Message("Largest errors"), largest, Message("rows"))
