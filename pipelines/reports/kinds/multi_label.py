"""Several labels per text: F1 by label, calibration, exact matches by length, texts with most errors."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Section, Table
from pipelines.reports.kinds.common import beginning, by_length, calibration

__all__ = ["sections"]

_ERRORS = 20
_BARS = 30  # labels with bars; with more, a table


def sections(kind: Any, predicted: Iterable[tuple[dict[str, Any], Any]]) -> Iterator[Section]:
    lengths: list[int] = []
    exact: list[bool] = []
    shares: list[np.ndarray] = []
    there: list[np.ndarray] = []
    right, given, true = np.zeros((3, len(kind.labels)), dtype=np.int64)
    errors: list[tuple[int, Entry]] = []
    for row, prediction in predicted:
        targets, labels = set(kind.target(row)), set(prediction["labels"])
        own, chosen = (np.array([label in side for label in kind.labels]) for side in (targets, labels))
        right, given, true = right + (own & chosen), given + chosen, true + own
        texts = kind.texts(row)
        lengths.append(sum(map(len, texts)))
        exact.append(targets == labels)
        shares.append(np.array([prediction["probabilities"][label] for label in kind.labels]))
        there.append(own)
        if targets != labels:
            facts = tuple(
                (name, ", ".join(label for label in kind.labels if label in side) or "none")
                for name, side in (("true", targets), ("predicted", labels))
            )
            errors.append((len(targets ^ labels), Entry("", "\n".join(map(beginning, texts)), facts)))
    if not lengths:
        return

    f1s = [2 * r / (g + t) if g + t else None for r, g, t in zip(right, given, true, strict=True)]
    yield Section("F1 by label", (_by_label(kind.labels, f1s, right, given, true),))
    probabilities, happened = np.concatenate(shares), np.concatenate(there)
    more: list[Element] = [*calibration(probabilities, happened, x="probability of a label", y="share that is true")]
    more.append(by_length("All labels correct, by length", np.array(lengths), np.array(exact), what="texts"))
    yield Section("Calibration and length", tuple(more))
    if errors:
        errors.sort(key=lambda error: -error[0])
        shown = tuple(entry for _, entry in errors[:_ERRORS])
        yield Section(
            "Texts with the most wrong labels", (Folded(f"{len(shown)} of {len(errors):,}", shown, open=True),)
        )


def _by_label(labels: Any, f1s: Any, right: np.ndarray, given: np.ndarray, true: np.ndarray) -> Element:
    order = np.argsort(-true, kind="stable").tolist()
    title = f"Scores of {len(labels):,} labels"
    if len(labels) <= _BARS:
        bars = tuple(
            Bar(
                labels[place],
                (f1s[place] or 0.0,),
                f"{formatting.percent(f1s[place])}, {formatting.count(true[place])} rows",
                korean=True,
            )
            for place in order
        )
        return Bars(title, bars, note="F1, most frequent label first. A dash: never true nor predicted.")
    rows = tuple(
        (
            labels[place],
            formatting.percent(f1s[place]),
            *(formatting.count(side[place]) for side in (true, given, right)),
        )
        for place in order
    )
    return Table(title, ("label", "F1", "true", "predicted", "both"), rows, "krrrr", folded=True)
