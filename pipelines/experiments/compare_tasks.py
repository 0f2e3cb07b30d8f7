"""Prediction files of tasks, written and read, and the comparison of models by them, with significance tests."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from korbert.errors import ArtifactError, ModelError, SettingsError
from korbert.messages import Message, argument
from korbert.pipelines.artifacts import json_lines, store
from korbert.pipelines.experiments.compare_pretraining import distinct_names
from korbert.pipelines.experiments.scores import score_table
from korbert.pipelines.experiments.search import ModelResult
from korbert.system import JsonObject, write_bytes_atomically
from korbert.tasks.files import TaskRow
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.kinds.kind import Kind, TaskPrediction

PREDICTIONS = "predictions.jsonl"


@dataclass(frozen=True)
class ComparedModel:
    """A model of an artifact. scored_on: as in Splits. facts: the entries of scores.json, one per seed.

    predictions: for each seed, one prediction per row.
    """

    folder: Path
    model: str
    task: Kind
    scored_on: str
    facts: list[JsonObject]
    rows: list[TaskRow]
    predictions: list[list[TaskPrediction]]
    name: str = ""

    @classmethod
    def of(cls, folder: Path, model: str) -> "ComparedModel":
        """Reads a model from an artifact, still without a name. model: "" for the first one, the encoder."""
        rows, predictions = read_predictions(folder / PREDICTIONS)
        if model and model not in predictions:
            raise SettingsError(
                "{option} {model}: {folder} has predictions of {names}: name one of these", option=argument("model"),
                model=model, folder=folder, names=", ".join(predictions),
            )  # fmt: skip
        model = model or next(iter(predictions))
        path = folder / "scores.json"
        scores = store.read_json(path) or {}
        seed_predictions = predictions[model]
        facts = [row for row in scores.get("rows", ()) if row.get("name") == model]
        if len(facts) != len(seed_predictions):
            raise ArtifactError(
                "{path}: has {runs} runs of {model}, {predictions} has {others}: rebuild this artifact with {option}",
                path=path, runs=len(facts), model=model, predictions=PREDICTIONS, others=len(seed_predictions),
                option=argument("rebuild"),
            )  # fmt: skip
        try:
            task = kind_of_task(scores.get("task") or {}, str(path))
        except ModelError as error:
            raise ArtifactError(error.message) from None
        return cls(folder, model, task, str(scores.get("scored_on")), facts, rows, seed_predictions)


@dataclass(frozen=True)
class TaskComparison:
    """Two or more models scored on the same rows. scores: as score_table returns them."""

    task: Kind
    sides: list[ComparedModel]
    scores: JsonObject

    @classmethod
    def of(cls, task: Kind, sides: list[ComparedModel]) -> "TaskComparison":
        """Scores the sides. ArtifactError for predictions of another kind of task."""
        results = []
        for side in sides:
            for facts, predictions in zip(side.facts, side.predictions, strict=True):
                try:
                    task.run(side.rows, predictions)
                except (ValueError, LookupError, TypeError) as error:
                    raise ArtifactError(
                        "{path}: {model}: not predictions of a {kind} ({error}): rebuild this artifact with {option}",
                        path=side.folder / PREDICTIONS, model=side.model, kind=task.name, error=error,
                        option=argument("rebuild"),
                    ) from None  # fmt: skip
                results.append(ModelResult({**facts, "name": side.name}, predictions, side.folder))
        return cls(task, sides, score_table(task, sides[0].rows, results))

    @property
    def rows(self) -> list[TaskRow]:
        return self.sides[0].rows

    def notes(self) -> list[Message]:
        """Reasons why the comparison may be unfair."""
        return [
            Message(
                "{name}: scored on validation rows, which also chose its epoch: its score is optimistic", name=side.name
            )
            for side in self.sides
            if side.scored_on == "valid"
        ]

    def as_json(self) -> JsonObject:
        sides = [
            {**model, "folder": str(side.folder), "model": side.model, "scored_on": side.scored_on}
            for side, model in zip(self.sides, self.scores["models"], strict=True)
        ]
        return {
            "kind": self.task.name,
            "rows": len(self.rows),
            "metrics": self.scores["metrics"],
            "sides": sides,
            "comparisons": self.scores["comparisons"],
            "notes": self.notes(),
        }


def write_predictions(folder: Path, rows: Sequence[TaskRow], results: Sequence[ModelResult]) -> None:
    """Writes the prediction file: a line per row with its roles, and `predictions`: model -> a prediction per seed."""
    lines = []
    for number, row in enumerate(rows):
        predictions: dict[str, list[Any]] = {}
        for result in results:
            predictions.setdefault(result.facts["name"], []).append(result.predictions[number])
        values = {role: value for role, value in row.items() if not isinstance(value, np.ndarray)}
        lines.append(json.dumps({**values, "predictions": predictions}, ensure_ascii=False))
    write_bytes_atomically(
        folder / PREDICTIONS, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    )


def read_predictions(path: Path) -> tuple[list[TaskRow], dict[str, list[list[TaskPrediction]]]]:
    """Returns the rows of a prediction file, and model -> predictions by seed. ArtifactError if the file is damaged."""
    rows = []
    lines = list[dict[str, list[Any]]]()
    for number, row in enumerate(json_lines(path), 1):
        lines.append(row["predictions"])
        counts, first_counts = ({model: len(seeds) for model, seeds in line.items()} for line in (lines[-1], lines[0]))
        if not all(counts.values()) or counts != first_counts:
            raise ArtifactError(
                "{path}: line {number} has other seeds: rebuild this artifact with {option}",
                option=argument("rebuild"),
                path=path,
                number=number,
            )
        rows.append({role: value for role, value in row.items() if role != "predictions"})
    if not lines or not lines[0]:
        raise ArtifactError(
            "{path}: has no predictions: rebuild this artifact with {option}", option=argument("rebuild"), path=path
        )
    return rows, {
        model: [[line[model][seed] for line in lines] for seed in range(len(seeds))]
        for model, seeds in lines[0].items()
    }


def _beginning(row: TaskRow) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)[:200] if row else Message("absent")


def compare_tasks(folders: Sequence[Path], models: Sequence[str] = ()) -> TaskComparison:
    """Compares the first artifact with each other one, row by row.

    models: names of the models to compare, one for all folders or one per folder; none: the first of each, the encoder.
    Raises SettingsError for fewer than two sides, a duplicate, or different tasks; ArtifactError for predictions of
    different rows or of another kind of task, and for damaged files.
    """
    if len(folders) < 2:
        raise SettingsError("comparing needs at least two artifacts; given: {number}", number=len(folders))
    if len(models) > 1 and len(models) != len(folders):
        raise SettingsError(
            "{option}: {names} names for {folders} folders: give one, or one per folder", option=argument("model"),
            names=len(models), folders=len(folders),
        )  # fmt: skip
    wanted = models if len(models) > 1 else list(models or [""]) * len(folders)
    sides = [ComparedModel.of(folder, model) for folder, model in zip(folders, wanted, strict=True)]
    paths = [side.folder.resolve() / side.model for side in sides]
    for number, path in enumerate(paths):
        if path in paths[:number]:
            raise SettingsError(
                "{folder}: its model {model} is named twice: name another folder or {option}", option=argument("model"),
                folder=folders[number], model=path.name,
            )  # fmt: skip
    task = _common_task(sides)
    for side in sides[1:]:
        for number, pair in enumerate(zip_longest(sides[0].rows, side.rows, fillvalue=TaskRow()), 1):
            here, there = ({role: value for role, value in row.items() if value is not None} for row in pair)
            if here != there:
                raise ArtifactError(
                    "{path}: line {number} is {row}, in {first_path} it is {first_row}: score both on the same file",
                    path=side.folder / PREDICTIONS, number=number, row=_beginning(pair[1]),
                    first_path=sides[0].folder / PREDICTIONS, first_row=_beginning(pair[0]),
                )  # fmt: skip
    # The folders tell the sides apart, or the models of one folder.
    named = [replace(side, name=name) for side, name in zip(sides, distinct_names(paths), strict=True)]
    return TaskComparison.of(task, named)


def _common_task(sides: Sequence[ComparedModel]) -> Kind:
    """The task to score all sides by: that of the first side, with the labels of all."""
    first = sides[0].task
    for side in sides[1:]:
        for what, here, there in (
            (Message("kind"), first.name, side.task.name),
            (Message("first metric"), first.metrics[0], side.task.metrics[0]),
            *((name, getattr(first, name), getattr(side.task, name, None)) for name in first.compared_fields),
        ):
            if here != there:
                raise SettingsError(
                    "{first}, {second}: have different tasks: {what} is {here} and {there}: compare artifacts of the "
                    "same task",
                    first=sides[0].folder, second=side.folder, what=what, here=here, there=there,
                )  # fmt: skip
    return first.model_copy(
        update={
            name: tuple(dict.fromkeys(label for side in sides for label in getattr(side.task, name)))
            for name in first.label_fields
        }
    )
