"""One label per text: confusion with examples, calibration, scores by label and length, most confident errors."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Element, Entry, Folded, Matrix, Section, Table
from pipelines.reports.kinds import multi_label
from pipelines.reports.kinds.common import Predicted, beginning, by_length, calibration, label_scores, worst

__all__ = ["sections"]

_MATRIX_LABELS = 10  # with more, the most frequent confusions are listed
_CELLS = 20  # most frequent confusions shown with examples
_EXAMPLES = 5  # of each


class _Error(NamedTuple):
    """true, predicted: indices of labels. probability: of the predicted one."""

    probability: float
    true: int
    predicted: int
    entry: Entry


def sections(kind: Any, predicted: Predicted, details: Json) -> Iterator[Section]:
    if kind.several:
        yield from multi_label.sections(kind, predicted, details)
        return
    index_of = {label: index for index, label in enumerate(kind.labels)}
    counts = np.zeros((len(index_of), len(index_of)), dtype=np.int64)
    lengths, right, probabilities = [], [], []
    errors: list[_Error] = []
    for row, prediction in predicted:
        texts, target, label = kind.texts(row), kind.target(row), prediction["label"]
        probability = prediction["probabilities"][label]
        counts[index_of[target], index_of[label]] += 1
        lengths.append(sum(map(len, texts)))
        right.append(target == label)
        probabilities.append(probability)
        if target != label:
            facts = (("true", target), ("predicted", f"{label}, {formatting.percent(probability)}"))
            entry = Entry("", beginning(*texts), facts)
            errors.append(_Error(probability, index_of[target], index_of[label], entry))
    if not lengths:
        return
    errors.sort(key=lambda error: (-np.nan_to_num(error.probability), error.entry.text))

    yield Section("Confusion", list(confusion_elements(kind.labels, counts, errors)))
    reliability = calibration(probabilities, right, x="probability of the predicted label", y="share correct")
    yield Section(
        "Calibration and length", [*reliability, by_length("Accuracy by length", lengths, right, what="texts")]
    )
    totals = np.stack([counts.diagonal(), counts.sum(axis=0), counts.sum(axis=1)], axis=1)
    yield Section("Labels", [label_scores(kind.labels, totals, "rows")])
    yield from worst("Most confident errors", [error.entry for error in errors], " errors")


def confusion_elements(labels: Sequence[str], counts: np.ndarray, errors: Sequence[_Error]) -> Iterator[Element]:
    wrong = [(int(counts[cell]), *cell) for cell in zip(*np.nonzero(counts), strict=True) if cell[0] != cell[1]]
    wrong.sort(key=lambda cell: (-cell[0], cell[1:]))
    if len(labels) <= _MATRIX_LABELS:
        cells = [
            [(formatting.count(number), formatting.ratio(number, sum(row))) for number in row]
            for row in counts.tolist()
        ]
        note = "Rows: true labels. Columns: predictions. Shares are of the row."
        yield Matrix("Confusion matrix", labels, cells, note=note)
    elif wrong:
        rows = [
            (labels[true], labels[label], formatting.count(number), formatting.percent(number / counts[true].sum()))
            for number, true, label in wrong[:_CELLS]
        ]
        yield Table("Most frequent confusions", ("true label", "predicted", "rows", "share of label"), rows, "kkrr")
    for number, true, label in wrong[:_CELLS]:
        entries = [error.entry for error in errors if (error.true, error.predicted) == (true, label)][:_EXAMPLES]
        some = f", {len(entries)} shown" if len(entries) < number else ""
        yield Folded(f"{labels[true]} predicted as {labels[label]} · {formatting.count(number)}{some}", entries)
