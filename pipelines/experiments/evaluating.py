"""Scores of a model on a labelled file, for `korbert evaluate` and `korbert.evaluate`."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from korbert.errors import SettingsError
from korbert.folders import model_folder
from korbert.messages import Message, argument
from korbert.model import Model
from korbert.notebook import as_html
from korbert.personal_data import mask_rows
from korbert.pipelines.artifacts.figures import interval, text
from korbert.pipelines.artifacts.store import RECORD, read_json
from korbert.pipelines.experiments.scores import interval_over_rows
from korbert.pipelines.experiments.task_rows import few_rows, roles_of
from korbert.records import Form
from korbert.system import sha256_of
from korbert.tasks.files import TaskRow, read_rows, refuse_unseen_labels
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.noise import noise_function
from korbert.tasks.splits import drop_unusable


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
        with_noise: Kind of noise -> the evaluation of the rows with this noise; empty if noise was not asked for.
        notes: What the user should know about the rows: how many were read and dropped, and whether there are too few.
    """

    scores: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float] | None]
    rows: Sequence[TaskRow] = field(repr=False)
    with_noise: Mapping[str, "Evaluation"] = field(repr=False)
    notes: Sequence[str] = field(repr=False)

    def _repr_html_(self) -> str:
        suffixes = {metric: f" ({interval(metric, ends)})" if ends else "" for metric, ends in self.intervals.items()}
        scores = {metric: text(metric, score) + suffixes[metric] for metric, score in self.scores.items()}
        return as_html(f"{len(self.rows):,} rows", {**scores, "notes": self.notes})

    @property
    def noise(self) -> Mapping[str, Mapping[str, float | None]]:
        """Kind of noise -> metric -> score of the rows with this noise; empty if noise was not asked for."""
        return {name: evaluation.scores for name, evaluation in self.with_noise.items()}


def evaluate_file(
    model: Model, file: Path, columns: Mapping[str, Sequence[str]], form: Form = "auto", *, noise: bool = False
) -> Evaluation:
    """Scores a model on a file, each score with its 95 % bootstrap interval over rows (None if undefined).

    columns: role -> its columns; for other roles, the columns of the training file if this file has them, else usual
    names. noise: also score the same rows with disturbed texts (korbert.tasks.noise).
    Raises CorpusError for a file that cannot be read, and for labels that were not in the training data; SettingsError
    for noise with a kind of task that takes none, and for a model that abstains from giving a text its one label.
    """
    kind = model.task
    if noise and not kind.noise:
        raise SettingsError(
            "{option_noise}: models of kind {kind} cannot be scored with noise; these can: {others}",
            kind=kind.name,
            others=", ".join(name for name, entry in KINDS.items() if entry.kind_class.noise),
            option_noise=argument("noise"),
        )
    if isinstance(kind, Classification) and kind.abstains_below and not kind.several:
        raise SettingsError(
            "{name}: this model abstains below {percent:g} %, and texts without a label cannot be scored: evaluate the "
            "model that it was made of",
            name=model.name,
            percent=kind.abstains_below,
        )
    columns = {kind.label_role if role == "label" else role: names for role, names in columns.items()}
    rows = read_rows([file], roles_of(kind), form=form, columns=columns, trained=kind.columns)
    if hasattr(kind, "labels"):
        refuse_unseen_labels(rows, kind.labels)
    if kind.masks_personal:  # in the noise and in what is written, too
        mask_rows(rows)
    kind = kind.validated_on(rows)
    was_trained_on = _was_trained_on(model, file)
    # The kind may have other settings now, such as its metrics; the caller's model stays as it is.
    model = Model(model.network, model.tokenizer, kind, name=model.name, precision=model.precision)
    rows = drop_unusable(rows, kind.target)

    def scored(rows: Sequence[TaskRow], with_noise: Mapping[str, Evaluation], notes: Sequence[str]) -> Evaluation:
        predictions = model.predict_rows(rows)
        run = kind.run(rows, predictions)
        scores = kind.scores(rows, predictions)
        return Evaluation(
            scores=scores,
            intervals={metric: interval_over_rows(kind, run, metric) for metric in scores},
            rows=[{**row, "prediction": prediction} for row, prediction in zip(rows, predictions, strict=True)],
            with_noise=with_noise,
            notes=notes,
        )

    with_noise = {}
    for name in kind.noise if noise else ():
        change = noise_function(name, random.Random(0))  # the same changes in every run
        with_noise[name] = scored([kind.with_noise(row, change) for row in rows], {}, ())
    notes = [
        Message("{kind}: {about}", kind=kind.name, about=kind.description()),
        *rows.summary(),
        *few_rows(len(rows)),
    ]
    if was_trained_on:
        notes.append(
            Message("{file}: the model was trained on this file: expect lower scores on other rows", file=file)
        )
    return scored(rows.rows, with_noise, notes)


def _was_trained_on(model: Model, file: Path) -> bool:
    """Whether a file is one of those that the artifact of the model records as training files."""
    folder = Path(model.folder or "")
    if not (model.folder and folder.is_dir() and isinstance(file, Path) and file.is_file()):
        return False
    record = read_json(model_folder(folder).parent / RECORD) or {}
    recorded = [entry.get("sha256") for entry in record.get("inputs", {}).get("files", {}).get("train", [])]
    return bool(recorded) and sha256_of(file) in recorded
