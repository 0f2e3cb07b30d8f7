"""What the pages of several kinds of tasks show: calibration, scores by label, errors by cause, examples of errors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import formatting
from korbert.pipelines.reports.drawing import (
    Bars,
    Element,
    Example,
    Folded,
    Section,
    Series,
    TableElement,
    beginning,
    curves,
    in_words,
    number_and_share,
    ranked_bars,
)
from korbert.tasks.files import TaskRow

_BINS = 10  # of the predicted probability
_ERRORS = 20  # shown
_UNFOLDED = 20  # rows of a table
_PROBABILITIES = {  # of the predicted one, by its key in a prediction
    "label": Message("probability of the predicted label"),
    "choice": Message("probability of the predicted choice"),
}


Causes = Mapping[str, tuple[Message, Message]]
"""Why predictions are wrong: a key of the data -> its display name, and what it means."""


@dataclass(frozen=True)
class ScoredRows:
    """The scored rows of a task with the predictions of one model. kind: the task's Kind (korbert/tasks/kinds).

    temperature: the number by which the model's scores were divided to calibrate them; 1.0 if they were not. nearest:
    the number of a row -> the training rows nearest to it, each as its texts and its label.
    """

    kind: Any
    rows: Sequence[TaskRow]
    predictions: Sequence[Any]
    temperature: float = 1.0
    nearest: Mapping[str, Sequence[tuple[Sequence[str], Any]]] = field(default_factory=dict)

    def entry(self, index: int) -> Example:
        """A row with its target and its prediction."""
        row = self.rows[index]
        near = [
            (Message("near it"), join_messages([beginning(*texts), in_words(row, target)], " → "))
            for texts, target in self.nearest.get(str(index), ())
        ]
        return Example(
            "",
            beginning(*self.kind.texts(row)),
            (
                (Message("true"), in_words(row, self.kind.target(row))),
                (Message("predicted"), in_words(row, self.predictions[index])),
                *near,
            ),
        )

    def worst(self, title: str, errors: Sequence[int], what: str) -> Iterator[Section]:
        """The first 20 errors as a section; nothing without errors. errors: indices of rows. what: noun for errors."""
        if errors:
            entries = [self.entry(index) for index in errors[:_ERRORS]]
            shown = Message("{shown} of {number:,} {what}", shown=len(entries), number=len(errors), what=what)
            yield Section(title, [Folded(shown, entries, open=True)])

    def by_confidence(self, key: str) -> tuple[list[int], Section]:
        """The indices of errors, the most confident first, and the section on calibration. key: "label" or "choice"."""
        true, predicted = self.kind.run(self.rows, self.predictions).T
        right = true == predicted
        # A label that was held back has no probability.
        probabilities = np.array(
            [
                np.nan if prediction[key] is None else prediction["probabilities"][prediction[key]]
                for prediction in self.predictions
            ]
        )
        order = np.argsort(-np.nan_to_num(probabilities), kind="stable")
        calibrated = calibration(probabilities, right, x=_PROBABILITIES[key], y=Message("share correct"))
        return order[~right[order]].tolist(), Section(Message("Confidence"), list(calibrated))


def calibration(probabilities: np.ndarray, outcomes: np.ndarray, *, x: str, y: str) -> Iterator[Element]:
    """Yields a reliability diagram: mean prediction and share of outcomes in ten bins. Empty bins are left out.

    probabilities: (N,) from 0 to 1; if none is finite, there is no diagram. outcomes: (N,) bool, whether the event
    occurred.
    """
    finite = np.isfinite(probabilities)
    probabilities = probabilities[finite].clip(0, 1)
    outcomes = outcomes[finite]
    # A probability of exactly 1 belongs to the last bin.
    bins = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    sizes = np.bincount(bins, minlength=_BINS)
    filled = np.flatnonzero(sizes)
    mean, occurred = (np.bincount(bins, values, _BINS)[filled] / sizes[filled] for values in (probabilities, outcomes))
    if len(filled):
        yield from curves(
            Message("Calibration"),
            [
                Series(Message("measured"), mean, occurred),
                Series(Message("perfectly calibrated"), [0, 1], [0, 1], reference=True),
            ],
            x=x,
            y=y,
            percent=True,
            whole=False,
            note=Message("Above the dashed line, predicted probabilities are too low; below it, too high."),
        )


def label_scores(labels: Sequence[str], totals: np.ndarray, unit: str, note: str = "") -> TableElement:
    """Precision, recall and F1 of each label, the most frequent first. totals: (labels, 3): right, predicted, true."""
    rows = []
    for index in np.argsort(-totals[:, 2], kind="stable").tolist():
        right, predicted, true = totals[index].tolist()
        # Precision, recall and F1; a dash where they are undefined.
        shares = ((right, predicted), (right, true), (2 * right, predicted + true))
        scores = (formatting.percent(part / whole) if whole else formatting.UNKNOWN for part, whole in shares)
        rows.append((labels[index], *scores, formatting.count(true), formatting.count(predicted)))
    return TableElement(
        Message("Scores of {count:,} label", "Scores of {count:,} labels", count=len(rows)),
        (Message("label"), Message("precision"), Message("recall"), Message("F1"), unit, Message("predicted")),
        rows,
        "krrrrr",
        folded=len(rows) > _UNFOLDED,
        note=note,
    )


def cause_bars(numbers: Mapping[str, int], causes: Causes) -> Iterator[Bars]:
    """Errors by cause, the most frequent first, with the meaning of each cause; nothing without errors."""
    if total := sum(numbers.values()):
        meanings = join_messages(join_messages(causes[key], ": ") for key in numbers)
        yield from ranked_bars(
            Message("Errors by cause"),
            [(causes[key][0], number) for key, number in numbers.items()],
            number_and_share(total),
            note=join_messages([meanings, "."], ""),
        )
