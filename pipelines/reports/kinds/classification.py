"""One label per text: confusion with examples, calibration, scores by label, most confident errors.

Several labels: scores by label, calibration, texts with most errors.
"""

from collections.abc import Iterator

import numpy as np

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import formatting
from korbert.pipelines.reports.drawing import Element, Folded, MatrixElement, Section
from korbert.pipelines.reports.kinds.common import ScoredRows, calibration, label_scores
from korbert.system import JsonObject
from korbert.tasks.metrics.classification import confusion

_MATRIX_LABELS = 10  # with more, there are only examples of the most frequent confusions
_CELLS = 20  # most frequent confusions shown with examples
_EXAMPLES = 5  # of each


def sections(scored: ScoredRows, details: JsonObject) -> Iterator[Section]:
    if scored.kind.several:
        yield from multi_label_sections(scored)
        return
    labels = scored.kind.labels
    true, predicted = scored.kind.run(scored.rows, scored.predictions).T
    errors, calibrated = scored.by_confidence("label")
    counts = confusion(true, predicted, len(labels))
    of_cell: dict[tuple[int, int], list[int]] = {}
    for index in errors:
        of_cell.setdefault((true[index], predicted[index]), []).append(index)

    yield Section(Message("Confusion"), list(confusion_elements(scored, counts, of_cell)))
    yield calibrated
    totals = np.stack([counts.diagonal(), counts.sum(axis=0), counts.sum(axis=1)], axis=1)
    yield Section(Message("Labels"), [label_scores(labels, totals, Message("rows"))])
    yield from scored.worst(Message("Most confident errors"), errors, Message("errors"))


def confusion_elements(
    scored: ScoredRows, counts: np.ndarray, of_cell: dict[tuple[int, int], list[int]]
) -> Iterator[Element]:
    """counts: (labels, labels), true by predicted. of_cell: indices of the errors of each pair of labels."""
    labels = scored.kind.labels
    cells = sorted(of_cell, key=lambda cell: (-len(of_cell[cell]), cell))[:_CELLS]
    if len(labels) <= _MATRIX_LABELS:
        yield MatrixElement(
            Message("Confusion matrix"),
            labels,
            [
                [(formatting.count(number), formatting.ratio(number, sum(row))) for number in row]
                for row in counts.tolist()
            ],
            note=Message("Rows: true labels. Columns: predictions. Shares are of the row."),
        )
    for true, label in cells:
        errors = of_cell[true, label]
        title = Message("{true} predicted as {label}", true=labels[true], label=labels[label])
        number: str = formatting.count(len(errors))
        if len(errors) > _EXAMPLES:
            number = Message("{errors}, {shown} shown", errors=number, shown=_EXAMPLES)
        yield Folded(join_messages([title, number], " · "), [scored.entry(index) for index in errors[:_EXAMPLES]])


def multi_label_sections(scored: ScoredRows) -> Iterator[Section]:
    labels = scored.kind.labels
    true, predicted = scored.kind.run(scored.rows, scored.predictions).swapaxes(0, 1)  # (rows, labels) each
    totals = np.stack([(true & predicted).sum(axis=0), predicted.sum(axis=0), true.sum(axis=0)], axis=1)
    yield Section(Message("Labels"), [label_scores(labels, totals, Message("rows"))])
    probabilities = np.array([[of_row["probabilities"][label] for label in labels] for of_row in scored.predictions])
    calibrated = calibration(
        probabilities.ravel(), true.ravel(), x=Message("probability of a label"), y=Message("share that is true")
    )
    yield Section(Message("Confidence"), list(calibrated))
    wrong = (true != predicted).sum(axis=1)
    errors = [index for index in np.argsort(-wrong, kind="stable").tolist() if wrong[index]]
    yield from scored.worst(Message("Texts with the most wrong labels"), errors, Message("texts"))
