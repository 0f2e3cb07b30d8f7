"""One label per text: confusion with examples, calibration, abstention, scores by label, most confident errors.

Several labels: scores by label, calibration, abstention, texts with most errors.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import formatting
from korbert.pipelines.reports.drawing import (
    Element,
    Folded,
    MatrixElement,
    Section,
    Series,
    TableElement,
    curves,
)
from korbert.pipelines.reports.kinds.common import ScoredRows, calibration, label_scores
from korbert.system import JsonObject
from korbert.tasks.metrics.calibration import expected_calibration_error
from korbert.tasks.metrics.classification import confusion

_MATRIX_LABELS = 10  # with more, there are only examples of the most frequent confusions
_CELLS = 20  # most frequent confusions shown with examples
_EXAMPLES = 5  # of each
_PRECISIONS = (80, 90, 95, 98, 99)  # in percent


def sections(scored: ScoredRows, details: JsonObject) -> Iterator[Section]:
    if scored.kind.several:
        yield from multi_label_sections(scored, details)
        return
    labels = scored.kind.labels
    true, predicted = scored.kind.run(scored.rows, scored.predictions).T
    errors, calibrated = scored.by_confidence("label")
    counts = confusion(true, predicted, len(labels))
    of_cell: dict[tuple[int, int], list[int]] = {}
    for index in errors:
        of_cell.setdefault((true[index], predicted[index]), []).append(index)

    yield Section(Message("Confusion"), list(confusion_elements(scored, counts, of_cell)))
    yield confidence(scored, calibrated.elements)
    totals = np.stack([counts.diagonal(), counts.sum(axis=0), counts.sum(axis=1)], axis=1)
    yield Section(Message("Labels"), [label_scores(labels, totals, Message("rows")), *morphemes(details)])
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


def confidence(scored: ScoredRows, calibrated: Sequence[Element]) -> Section:
    """The section on how far probabilities can be trusted. calibrated: the reliability diagram."""
    kind = scored.kind
    scores = kind.outputs_of(scored.predictions)
    if not np.isfinite(scores).all():
        return Section(Message("Confidence"), calibrated)
    true_labels = kind.run(scored.rows, scored.predictions)[:, 0]
    if not kind.several:
        true_labels = np.eye(len(kind.labels), dtype=bool)[true_labels]
    after, before = (
        kind.probabilities(torch.from_numpy(scale * scores)).numpy() for scale in (1.0, scored.temperature)
    )
    chosen = kind.chosen(after)
    counted = np.ones_like(chosen) if kind.several else chosen
    errors = [expected_calibration_error(shares[counted], true_labels[counted]) for shares in (after, before)]
    text = Message(
        "Expected calibration error: {after}, and {before} before the scores were divided by the temperature.",
        after=formatting.percent(errors[0]), before=formatting.percent(errors[1]),
    )  # fmt: skip
    if scored.temperature == 1:
        text = Message("Expected calibration error: {error}.", error=formatting.percent(errors[0]))
    return Section(Message("Confidence"), [*calibrated, *abstention(after, chosen, true_labels)], text)


def abstention(shares: np.ndarray, chosen: np.ndarray, there: np.ndarray) -> Iterator[Element]:
    """Yields a curve and a table of how many labels are right if the model gives only those it is most sure of.

    shares: (N, C) probabilities; chosen, there: (N, C) bool, the predicted labels and the true ones.
    """
    if not chosen.any():
        return
    probabilities = shares[chosen]
    right = there[chosen]
    order = np.argsort(-probabilities, kind="stable")
    counts = np.arange(1, len(order) + 1)
    yield from curves(
        Message("Labels given, and right"),
        [Series(Message("by probability"), counts / len(order), np.cumsum(right[order]) / counts)],
        x=Message("share of labels given"),
        y=Message("share correct"),
        percent=True,
        whole=False,
        note=Message("The model gives the labels that it is most sure of, and abstains from the others."),
    )
    rows = []
    for precision in _PRECISIONS:
        is_given = probabilities >= precision / 100
        correct = formatting.percent(right[is_given].mean()) if is_given.any() else formatting.UNKNOWN
        rows.append((f"{precision} %", formatting.percent(is_given.mean()), correct))
    yield TableElement(
        Message("Precision asked for with --abstain"),
        (Message("asked"), Message("labels given"), Message("correct")),
        rows,
        "rrr",
        note=Message("A label is given where its probability is at least that."),
    )


def morphemes(details: JsonObject) -> Iterator[Element]:
    """Yields a table of the morphemes that speak most for each label; nothing for a model without words."""
    if by_label := details.get("morphemes"):
        yield TableElement(
            Message("Strongest morphemes"),
            (Message("label"), Message("morphemes")),
            [(label, " · ".join(names)) for label, names in by_label.items()],
            "kl",
            note=Message("By their weights in the model of words alone, the strongest first."),
        )


def multi_label_sections(scored: ScoredRows, details: JsonObject) -> Iterator[Section]:
    labels = scored.kind.labels
    true, predicted = scored.kind.run(scored.rows, scored.predictions).swapaxes(0, 1)  # (rows, labels) each
    totals = np.stack([(true & predicted).sum(axis=0), predicted.sum(axis=0), true.sum(axis=0)], axis=1)
    yield Section(Message("Labels"), [label_scores(labels, totals, Message("rows")), *morphemes(details)])
    probabilities = np.array([[of_row["probabilities"][label] for label in labels] for of_row in scored.predictions])
    calibrated = calibration(
        probabilities.ravel(), true.ravel(), x=Message("probability of a label"), y=Message("share that is true")
    )
    yield confidence(scored, list(calibrated))
    wrong = (true != predicted).sum(axis=1)
    errors = [index for index in np.argsort(-wrong, kind="stable").tolist() if wrong[index]]
    yield from scored.worst(Message("Texts with the most wrong labels"), errors, Message("texts"))
