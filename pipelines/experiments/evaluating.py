"""Scores of a model on a labelled file, for `korbert evaluate` and `korbert.evaluate`."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from korbert.errors import SettingsError
from korbert.model import Model
from korbert.pipelines.experiments.preparing import few_rows, roles_of
from korbert.pipelines.experiments.scores import interval_over_rows
from korbert.records.form import Form
from korbert.tasks.files import read_rows, refuse_unseen_labels
from korbert.tasks.kinds import KINDS
from korbert.tasks.noise import NOISE
from korbert.tasks.splits import usable


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model on labelled rows.

        >>> found = korbert.evaluate("models/mood", [("정말 재미있는 영화", "긍정"), ("시간이 아깝다", "부정")])
        >>> [row["label"] for row in found.rows], list(found.intervals)
        (['긍정', '부정'], ['accuracy', 'macro_f1'])

    Attributes:
        scores: Metric -> score, the main one first; None if undefined.
        intervals: Metric -> its 95 % bootstrap interval over rows; None if undefined.
        rows: The values of each row by role, and its `prediction`.
        noise: Kind of noise -> metric -> score of the rows so disturbed; empty if it was not asked for.
        notes: What the user should know of the rows: those read, those dropped, too few of them.
    """

    scores: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float] | None]
    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    noise: Mapping[str, Mapping[str, float | None]] = field(repr=False)
    notes: Sequence[str] = field(repr=False)


def evaluated(
    model: Model, file: Path, columns: Mapping[str, Sequence[str]], form: Form = "auto", *, noise: bool = False
) -> Evaluation:
    """Scores on a file, each with its 95 % bootstrap interval over rows (None if undefined).

    columns: role -> its columns; for others, those of the training file if this file has them, else usual names. noise:
    also scores the same rows with disturbed texts (korbert.tasks.noise).
    Raises CorpusError for a file that cannot be read, and for labels that were not in the training data; SettingsError
    for noise with a kind whose targets are places in a text.
    """
    kind = model.task
    if noise and not kind.takes_noise:
        others = " and ".join(name for name, entry in KINDS.items() if entry.kind_class.takes_noise)
        raise SettingsError(f"--noise: targets of kind {kind.name} have places in the text: it is for {others}")
    columns = {kind.label_role if role == "label" else role: names for role, names in columns.items()}
    rows = read_rows([file], roles_of(kind), form=form, columns=columns, trained=kind.columns)
    if hasattr(kind, "labels"):
        refuse_unseen_labels(rows, kind.labels)
    kind = kind.validated_on(rows)
    model = Model(model.network, model.tokenizer, kind, name=model.name, precision=model.precision)
    rows = usable(rows, kind.target)
    predictions = model.predict_rows(rows.rows)
    run = kind.run(rows.rows, predictions)
    scores = kind.scores(rows.rows, predictions)
    intervals = {metric: interval_over_rows(kind, run, metric) for metric in scores}
    lines = [{**row, "prediction": own} for row, own in zip(rows.rows, predictions, strict=True)]
    disturbed = {}
    for name, change in NOISE.items() if noise else ():
        rng = random.Random(0)  # the same changes in every run
        changed = [kind.disturbed(row, partial(change, rng=rng)) for row in rows.rows]
        disturbed[name] = kind.scores(rows.rows, model.predict_rows(changed))
    said = [f"{kind.name}: {kind.about()}", *rows.said(), *few_rows(len(rows))]
    return Evaluation(scores, intervals, lines, disturbed, said)
