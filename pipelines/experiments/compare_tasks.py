"""Compares models of several artifacts on the rows of one task, from their predictions, with significance tests."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from korbert.errors import ArtifactError, ModelError, SettingsError
from korbert.pipelines.artifacts.store import Json, read_json
from korbert.pipelines.experiments.compare_pretraining import distinct_names
from korbert.pipelines.experiments.scores import score_table
from korbert.pipelines.experiments.search import ModelResult
from korbert.tasks.files import Row
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.kinds.base import Kind, Prediction

PREDICTIONS = "predictions.jsonl"


@dataclass(frozen=True)
class Line:
    """A row of predictions. key: identifies the row. predictions: model name -> the prediction of each seed."""

    number: int
    row: Row
    key: str
    predictions: Mapping[str, list[Any]]


@dataclass(frozen=True)
class Side:
    """A model of an artifact. scored_on: "test" or "valid". facts: of each seed, from scores.json.

    predictions: of each seed, in the order of the compared rows.
    """

    name: str
    folder: Path
    model: str
    scored_on: str
    facts: list[Json]
    predictions: list[list[Prediction]]

    @classmethod
    def of(cls, folder: Path, model: str, lines: "Sequence[Line]") -> "Side":
        """One side, without name and predictions yet."""
        known = list(lines[0].predictions)
        if model and model not in known:
            raise SettingsError(f"--model {model}: {folder} has predictions of {', '.join(known)}: name one of these")
        model = model or known[0]
        scores = read_json(folder / "scores.json") or {}
        facts = [row for row in scores.get("rows", ()) if row.get("name") == model]
        if len(facts) != len(lines[0].predictions[model]):
            raise ArtifactError(
                f"{folder / 'scores.json'}: has {len(facts)} runs of {model}, {PREDICTIONS} has "
                f"{len(lines[0].predictions[model])}: rebuild this artifact with --rebuild"
            )
        return cls("", folder, model, str(scores.get("scored_on")), facts, [])


@dataclass(frozen=True)
class TaskComparison:
    """Two or more sides on the same rows. scores: as score_table; comparisons: the first with each."""

    task: Kind
    rows: list[Row]
    sides: list[Side]
    scores: Json

    @classmethod
    def of(cls, task: Kind, rows: list[Row], sides: list[Side]) -> "TaskComparison":
        """Scores the sides. ArtifactError for predictions of another kind of task."""
        results = []
        for side in sides:
            for facts, predictions in zip(side.facts, side.predictions, strict=True):
                try:
                    task.run(rows, predictions)
                except (ValueError, LookupError, TypeError) as error:
                    raise ArtifactError(
                        f"{side.folder / PREDICTIONS}: {side.model}: not predictions of a {task.name} ({error}): "
                        "rebuild this artifact with --rebuild"
                    ) from None
                results.append(ModelResult({**facts, "name": side.name}, predictions, side.folder))
        return cls(task, rows, sides, score_table(task, rows, results))

    def notes(self) -> list[str]:
        """Reasons why the comparison may be unfair."""
        reason = "scored on validation rows, which also chose its epoch: its score is optimistic"
        return [f"{side.name}: {reason}" for side in self.sides if side.scored_on != "test"]

    def as_json(self) -> Json:
        sides = [
            {**model, "folder": str(side.folder), "model": side.model, "scored_on": side.scored_on}
            for side, model in zip(self.sides, self.scores["models"], strict=True)
        ]
        scores = {"metrics": self.scores["metrics"], "sides": sides, "comparisons": self.scores["comparisons"]}
        return {"kind": self.task.name, "rows": len(self.rows), **scores, "notes": self.notes()}


def is_task(folder: Path) -> bool:
    """Whether a folder, or the one above a model/, is a task artifact with a prediction file."""
    return (artifact_of(folder) / PREDICTIONS).is_file()


def artifact_of(folder: Path) -> Path:
    """The artifact folder, given it or its model/."""
    return folder.parent if folder.name == "model" and not (folder / PREDICTIONS).exists() else folder


def read_predictions(path: Path) -> list[Line]:
    """The lines of a prediction file. Raises ArtifactError if it is damaged."""
    lines: list[Line] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = json.loads(line)
            predictions = row.pop("predictions")
            seeds = list(map(len, predictions.values()))
            if not all(seeds) or (lines and seeds != list(map(len, lines[0].predictions.values()))):
                raise ValueError("the lines have other numbers of seeds")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            again = "rebuild this artifact with --rebuild"
            raise ArtifactError(f"{path}: line {number} is damaged: {again}") from None
        known = {role: value for role, value in row.items() if value is not None}
        lines.append(Line(number, row, json.dumps(known, ensure_ascii=False, sort_keys=True), predictions))
    if not lines or not lines[0].predictions:
        raise ArtifactError(f"{path}: has no predictions: rebuild this artifact with --rebuild")
    return lines


def matched(first: Sequence[Line], other: Sequence[Line], paths: tuple[Path, Path]) -> list[Line]:
    """The lines of `other` in the row order of `first`. Raises ArtifactError if the rows are not the same."""
    waiting: dict[str, list[Line]] = {}
    for line in reversed(other):
        waiting.setdefault(line.key, []).append(line)
    matches, missing = [], []
    for line in first:
        if waiting.get(line.key):
            matches.append(waiting[line.key].pop())
        else:
            missing.append(line)
    left = sorted((line for lines in waiting.values() for line in lines), key=lambda line: line.number)
    if missing or left:
        alone, path = (missing[0], paths[0]) if missing else (left[0], paths[1])
        raise ArtifactError(
            f"{paths[1]}: lacks {len(missing):,} of the {len(first):,} rows of "
            f"{paths[0]} and has {len(left):,} others; the first difference is line {alone.number} of "
            f"{path}: {alone.key[:200]}: score both on the same file"
        )
    return matches


def compare_tasks(folders: Sequence[Path], models: Sequence[str] = ()) -> TaskComparison:
    """Compares the first artifact with each other one, row by row.

    models: names of the models to compare, one for all folders or one per folder; none: the first of each, the encoder.
    Raises SettingsError for fewer than two sides, a duplicate, or different tasks; ArtifactError for predictions of
    different rows, and for damaged files.
    """
    if len(folders) < 2:
        raise SettingsError(f"{len(folders)} artifact to compare: name at least two")
    if len(models) > 1 and len(models) != len(folders):
        raise SettingsError(f"--model: {len(models)} names for {len(folders)} folders: give one, or one per folder")
    artifacts = [artifact_of(folder) for folder in folders]
    wanted = list(models) * len(folders) if len(models) == 1 else list(models) or [""] * len(folders)
    lines = [read_predictions(folder / PREDICTIONS) for folder in artifacts]
    sides = [Side.of(*side) for side in zip(artifacts, wanted, lines, strict=True)]
    for number, side in enumerate(sides):
        if any((side.folder.resolve(), side.model) == (own.folder.resolve(), own.model) for own in sides[:number]):
            raise SettingsError(f"{folders[number]}: {side.model} is named twice: name different ones")
    task = common_task(sides)
    # Distinct names of the sides: parts of their paths, and the model if models differ.
    paths = list(dict.fromkeys(side.folder.resolve() for side in sides))
    names = dict(zip(paths, distinct_names(paths) if len(paths) > 1 else [""], strict=True))
    differ = len({side.model for side in sides}) > 1
    for number, (side, own) in enumerate(zip(tuple(sides), lines, strict=True)):
        rows = matched(lines[0], own, (artifacts[0] / PREDICTIONS, side.folder / PREDICTIONS))
        name = " ".join(filter(None, (names[side.folder.resolve()], side.model if differ else "")))
        by_seed = [[line.predictions[side.model][seed] for line in rows] for seed in range(len(side.facts))]
        sides[number] = replace(side, name=name, predictions=by_seed)
    return TaskComparison.of(task, [line.row for line in lines[0]], sides)


def common_task(sides: Sequence[Side]) -> Kind:
    """The task to score all sides by: that of the first side, with the labels of all."""
    tasks = []
    for side in sides:
        path = side.folder / "scores.json"
        try:
            tasks.append(kind_of_task((read_json(path) or {}).get("task") or {}, str(path)))
        except ModelError as error:
            raise ArtifactError(str(error)) from None
    first = tasks[0]
    for side, task in zip(sides[1:], tasks[1:], strict=True):
        for what, here, there in (
            ("kind", first.name, task.name),
            ("first metric", first.metrics[0], task.metrics[0]),
            *((name, getattr(first, name), getattr(task, name, None)) for name in first.compared_fields),
        ):
            if here != there:
                raise SettingsError(
                    f"{sides[0].folder}, {side.folder}: have different tasks: {what} is {here} and {there}: compare "
                    "artifacts of the same task"
                )
    labels = {
        name: tuple(dict.fromkeys(label for task in tasks for label in getattr(task, name)))
        for name in first.label_fields
    }
    return first.model_copy(update=labels)
