"""Multiple choice: accuracy by position of the right choice, calibration, errors."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Section
from pipelines.reports.kinds.common import beginning, by_length, calibration

__all__ = ["sections"]

_ERRORS = 20


def sections(kind: Any, predicted: Iterable[tuple[dict[str, Any], Any]]) -> Iterator[Section]:
    truths: list[int] = []
    givens: list[int] = []
    shares: list[float] = []
    lengths: list[int] = []
    errors: list[tuple[float, Entry]] = []
    for row, prediction in predicted:
        truth, given = kind.target(row), prediction["choice"]
        share = prediction["probabilities"][given]
        truths.append(truth)
        givens.append(given)
        shares.append(share)
        lengths.append(sum(map(len, kind.texts(row))))
        if truth != given:
            facts = (
                ("right", beginning(row["choices"][truth])),
                ("predicted", f"{beginning(row['choices'][given])} ({formatting.percent(share)})"),
            )
            errors.append((share, Entry("", beginning(row["text"]), facts)))
    if not truths:
        return

    right = np.array(truths) == np.array(givens)
    elements: list[Element] = [_by_place(np.array(truths), np.array(givens))]
    elements += calibration(shares, right, x="probability of the predicted choice", y="share correct")
    elements.append(by_length("Accuracy by length", np.array(lengths), right, what="rows"))
    yield Section("Position, calibration and length", tuple(elements))
    if errors:
        errors.sort(key=lambda error: -np.nan_to_num(error[0]))
        shown = tuple(entry for _, entry in errors[:_ERRORS])
        title = f"{len(shown)} of {len(errors):,} errors"
        yield Section("Most confident errors", (Folded(title, shown, open=True),))


def _by_place(truths: np.ndarray, givens: np.ndarray) -> Bars:
    bars = []
    for place in range(int(max(truths.max(), givens.max())) + 1):
        own = truths == place
        share = float((givens[own] == place).mean()) if own.any() else None
        taken = formatting.percent(float((givens == place).mean()))
        text = f"{formatting.percent(share)} of {formatting.count(own.sum())}; predicted {taken}"
        bars.append(Bar(f"choice {place + 1}", (share or 0.0,), text))
    note = "Accuracy if that choice is right; how often the model predicts it, over all rows."
    return Bars("Accuracy by position of the right choice", tuple(bars), note=note)
