"""Multiple choice: accuracy by position of the right choice, calibration, errors."""

from collections.abc import Iterator

import numpy as np

from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.elements import Bar, Bars, Section
from korbert.pipelines.reports.kinds.common import Scored, calibration


def sections(scored: Scored, details: Json) -> Iterator[Section]:
    true, predicted = scored.kind.run(scored.rows, scored.predictions).T
    right, probabilities = true == predicted, scored.chosen_probabilities("choice")
    elements = [
        by_position(true, predicted),
        *calibration(probabilities, right, x="probability of the predicted choice", y="share correct"),
    ]
    yield Section("Position and calibration", elements)
    errors = [index for index in np.argsort(-np.nan_to_num(probabilities), kind="stable").tolist() if not right[index]]
    yield from scored.worst("Most confident errors", errors, " errors")


def by_position(true: np.ndarray, predicted: np.ndarray) -> Bars:
    bars = []
    for position in range(int(max(true.max(), predicted.max())) + 1):
        here = true == position
        accuracy = float((predicted[here] == position).mean()) if here.any() else None
        share = formatting.percent(float((predicted == position).mean()))
        text = f"{formatting.percent(accuracy)} of {formatting.count(here.sum())}; predicted {share}"
        bars.append(Bar(f"choice {position + 1}", (accuracy or 0.0,), text))
    note = "Accuracy if that choice is right; how often the model predicts it, over all rows."
    return Bars("Accuracy by position of the right choice", bars, note=note)
