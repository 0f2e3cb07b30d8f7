"""One number per text: target against prediction, errors by target and by length, largest errors."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pipelines.reports import formatting
from pipelines.reports.elements import Element, Entry, Folded, Section, Table
from pipelines.reports.kinds.common import beginning
from pipelines.reports.pictures import scatter

__all__ = ["sections"]

_ERRORS = 20
_GROUPS = 5


def sections(kind: Any, predicted: Iterable[tuple[dict[str, Any], Any]]) -> Iterator[Section]:
    rows = [(kind.target(row), prediction, kind.texts(row)) for row, prediction in predicted]
    rows = [row for row in rows if np.isfinite(row[1])]
    if not rows:
        return
    targets, predictions = (np.array([row[side] for row in rows], dtype=float) for side in (0, 1))
    lengths = np.array([sum(map(len, texts)) for *_, texts in rows])
    elements: list[Element] = [
        scatter(
            "Prediction against target",
            targets,
            predictions,
            x="target",
            y="prediction",
            note="On the dashed line, both are equal. Each dot is a row.",
        ),
        _errors_by("Error by target", targets, predictions - targets, "target", 1),
        _errors_by("Error by length", lengths, predictions - targets, "characters", 0),
    ]
    yield Section("Errors", tuple(elements))
    order = np.argsort(-abs(predictions - targets), kind="stable")[:_ERRORS]
    entries = []
    for number in order.tolist():
        target, prediction, texts = rows[number]
        facts = (("target", formatting.decimal(target)), ("predicted", formatting.decimal(prediction)))
        entries.append(Entry("", "\n".join(map(beginning, texts)), facts))
    title = f"{len(entries)} of {len(rows):,} rows"
    yield Section("Largest errors", (Folded(title, tuple(entries), open=True),))


def _errors_by(title: str, values: np.ndarray, errors: np.ndarray, what: str, places: int) -> Table:
    """Mean absolute error and mean error in about five groups of equal size, ordered by `values`."""
    ends = np.unique(np.quantile(values, np.linspace(0, 1, _GROUPS + 1)[1:], method="higher"))
    group = np.searchsorted(ends, values)
    rows = []
    for number in range(len(ends)):
        inside = group == number
        first, last = (formatting.decimal(float(end), places) for end in (values[inside].min(), values[inside].max()))
        rows.append(
            (
                first if first == last else f"{first}–{last}",
                formatting.count(inside.sum()),
                formatting.decimal(float(abs(errors[inside]).mean())),
                f"{errors[inside].mean():+.2f}",
            )
        )
    note = "Mean error above 0: predicted too high."
    return Table(title, (what, "rows", "mean absolute error", "mean error"), tuple(rows), "rrrr", note)
