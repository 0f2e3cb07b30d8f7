"""Multiple choice: accuracy by position of the right choice, calibration, errors."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Entry, Section
from pipelines.reports.kinds.common import Predicted, beginning, by_length, calibration, worst

__all__ = ["sections"]


def sections(kind: Any, predicted: Predicted, details: Json) -> Iterator[Section]:
    true, chosen, probabilities, lengths = [], [], [], []
    errors: list[tuple[float, Entry]] = []
    for row, prediction in predicted:
        target, choice = kind.target(row), prediction["choice"]
        probability = prediction["probabilities"][choice]
        true.append(target)
        chosen.append(choice)
        probabilities.append(probability)
        lengths.append(sum(map(len, kind.texts(row))))
        if target != choice:
            answer = f"{beginning(row['choices'][choice])} ({formatting.percent(probability)})"
            facts = (("right", beginning(row["choices"][target])), ("predicted", answer))
            errors.append((probability, Entry("", beginning(row["text"]), facts)))
    if not true:
        return
    right = np.array(true) == np.array(chosen)
    elements = [
        by_position(np.array(true), np.array(chosen)),
        *calibration(probabilities, right, x="probability of the predicted choice", y="share correct"),
        by_length("Accuracy by length", lengths, right, what="rows"),
    ]
    yield Section("Position, calibration and length", elements)
    errors.sort(key=lambda error: -np.nan_to_num(error[0]))
    yield from worst("Most confident errors", [entry for _, entry in errors], " errors")


def by_position(true: np.ndarray, chosen: np.ndarray) -> Bars:
    bars = []
    for position in range(int(max(true.max(), chosen.max())) + 1):
        here = true == position
        accuracy = float((chosen[here] == position).mean()) if here.any() else None
        predicted = formatting.percent(float((chosen == position).mean()))
        text = f"{formatting.percent(accuracy)} of {formatting.count(here.sum())}; predicted {predicted}"
        bars.append(Bar(f"choice {position + 1}", (accuracy or 0.0,), text))
    note = "Accuracy if that choice is right; how often the model predicts it, over all rows."
    return Bars("Accuracy by position of the right choice", bars, note=note)
