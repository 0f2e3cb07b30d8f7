"""One label per text: confusion with examples, calibration, scores by label and length, most confident errors."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pipelines.reports import formatting
from pipelines.reports.elements import Element, Entry, Folded, Matrix, Section, Table
from pipelines.reports.kinds.common import beginning, by_length, calibration

__all__ = ["sections"]

_MATRIX_LABELS = 10  # with more, the most frequent confusions are listed
_CELLS = 20  # most frequent confusions shown with examples
_EXAMPLES = 5  # of each
_ERRORS = 20
_UNFOLDED = 20  # rows of a table


class _Error(NamedTuple):
    """truth, given: indices of labels. share: probability of the wrong label."""

    share: float
    truth: int
    given: int
    text: str


def sections(kind: Any, predicted: Iterable[tuple[dict[str, Any], Any]]) -> Iterator[Section]:
    """Reads the rows once, and keeps only their numbers and the errors."""
    places = {label: place for place, label in enumerate(kind.labels)}
    counts = np.zeros((len(places), len(places)), dtype=np.int64)
    lengths: list[int] = []
    right: list[bool] = []
    shares: list[float] = []
    errors: list[_Error] = []
    for row, prediction in predicted:
        texts = kind.texts(row)
        truth, given = places[kind.target(row)], places[prediction["label"]]
        share = prediction["probabilities"][prediction["label"]]
        counts[truth, given] += 1
        lengths.append(sum(map(len, texts)))
        right.append(truth == given)
        shares.append(share)
        if truth != given:
            errors.append(_Error(share, truth, given, "\n".join(map(beginning, texts))))
    if not lengths:
        return
    errors.sort(key=lambda error: (-np.nan_to_num(error.share), error.text))

    yield Section("Confusion", tuple(_confusion(kind.labels, counts, errors)))
    more: list[Element] = [*calibration(shares, right, x="probability of the predicted label", y="share correct")]
    more.append(by_length("Accuracy by length", np.array(lengths), np.array(right), what="texts"))
    yield Section("Calibration and length", tuple(more))
    yield Section("Labels", (_labels(kind.labels, counts),))
    if errors:
        shown = tuple(_entry(kind.labels, error) for error in errors[:_ERRORS])
        yield Section("Most confident errors", (Folded(f"{len(shown)} of {len(errors):,} errors", shown, open=True),))


def _confusion(labels: Sequence[str], counts: np.ndarray, errors: Sequence[_Error]) -> Iterator[Element]:
    wrong = [(int(counts[at]), *at) for at in zip(*np.nonzero(counts), strict=True) if at[0] != at[1]]
    wrong.sort(key=lambda cell: (-cell[0], cell[1:]))
    if len(labels) <= _MATRIX_LABELS:
        cells = tuple(
            tuple((formatting.count(number), formatting.ratio(number, sum(row))) for number in row)
            for row in counts.tolist()
        )
        note = "Rows: true labels. Columns: predictions. Shares are of the row."
        yield Matrix("Confusion matrix", tuple(labels), tuple(labels), cells, note)
    elif wrong:
        rows = tuple(
            (labels[truth], labels[given], formatting.count(number), formatting.percent(number / counts[truth].sum()))
            for number, truth, given in wrong[:_CELLS]
        )
        yield Table("Most frequent confusions", ("true label", "predicted", "rows", "share of label"), rows, "kkrr")
    for number, truth, given in wrong[:_CELLS]:
        own = [error for error in errors if (error.truth, error.given) == (truth, given)][:_EXAMPLES]
        some = f", {len(own)} shown" if len(own) < number else ""
        title = f"{labels[truth]} predicted as {labels[given]} · {formatting.count(number)}{some}"
        yield Folded(title, tuple(_entry(labels, error) for error in own))


def _labels(labels: Sequence[str], counts: np.ndarray) -> Table:
    rows = []
    for place in np.argsort(-counts.sum(axis=1), kind="stable"):
        right, given, true = int(counts[place, place]), int(counts[:, place].sum()), int(counts[place].sum())
        precision, recall = right / given if given else None, right / true if true else None
        f1 = 2 * right / (given + true) if given + true else None
        measures = map(formatting.percent, (precision, recall, f1))
        rows.append((labels[place], *measures, formatting.count(true), formatting.count(given)))
    head = ("label", "precision", "recall", "F1", "rows", "predicted")
    title = f"Scores of {len(labels):,} labels"
    return Table(title, head, tuple(rows), "krrrrr", folded=len(rows) > _UNFOLDED)


def _entry(labels: Sequence[str], error: _Error) -> Entry:
    facts = (("true", labels[error.truth]), ("predicted", f"{labels[error.given]}, {formatting.percent(error.share)}"))
    return Entry("", error.text, facts)
