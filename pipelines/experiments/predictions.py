"""Reads the prediction file of a task's artifact, and matches those of two artifacts row by row."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from korbert.errors import ArtifactError
from korbert.tasks.files import Row
from pipelines.artifacts.store import Json

__all__ = ["PREDICTIONS", "Line", "artifact_of", "is_task", "matched", "read_lines", "read_predictions"]

PREDICTIONS = "predictions.jsonl"


@dataclass(frozen=True)
class Line:
    """A row of predictions. key: identifies the row. predictions: model name -> the prediction of each seed."""

    number: int
    row: Row
    key: str
    predictions: Mapping[str, list[Any]]


def is_task(folder: Path) -> bool:
    """Whether a folder, or the one above a model/, is a task artifact with a prediction file."""
    return (artifact_of(folder) / PREDICTIONS).is_file()


def artifact_of(folder: Path) -> Path:
    """The artifact folder, given it or its model/."""
    return folder.parent if folder.name == "model" and not (folder / PREDICTIONS).exists() else folder


def read_predictions(path: Path) -> list[Line]:
    """The lines of a prediction file. Raises ArtifactError if it is damaged."""
    lines: list[Line] = []
    for number, line in enumerate(read_lines(path), 1):
        predictions = line.pop("predictions", None)
        if not isinstance(predictions, dict) or not all(isinstance(one, list) and one for one in predictions.values()):
            raise _damaged(path, number)
        if {name: len(one) for name, one in predictions.items()} != (
            {name: len(one) for name, one in (lines[0].predictions if lines else predictions).items()}
        ):
            raise _damaged(path, number)
        given = {role: value for role, value in line.items() if value is not None}
        lines.append(Line(number, line, json.dumps(given, ensure_ascii=False, sort_keys=True), predictions))
    if not lines or not lines[0].predictions:
        raise ArtifactError(f"{path}: has no predictions: rebuild this artifact with --rebuild")
    return lines


def read_lines(path: Path) -> list[Json]:
    """The JSON objects of a file, one per line. Raises ArtifactError naming the line for anything else."""
    values = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise _damaged(path, number)
        values.append(value)
    return values


def _damaged(path: Path, number: int) -> ArtifactError:
    return ArtifactError(f"{path}: line {number} is damaged: rebuild this artifact with --rebuild")


def matched(first: Sequence[Line], other: Sequence[Line], one: Path, two: Path) -> list[Line]:
    """The lines of `other` in the row order of `first`. Raises ArtifactError if the rows are not the same."""
    waiting: dict[str, list[Line]] = {}
    for line in reversed(other):
        waiting.setdefault(line.key, []).append(line)
    found = [waiting[line.key].pop() if waiting.get(line.key) else None for line in first]
    missing = [line for line, there in zip(first, found, strict=True) if there is None]
    left = sorted((line for lines in waiting.values() for line in lines), key=lambda line: line.number)
    if missing or left:
        alone, path = (missing[0], one) if missing else (left[0], two)
        raise ArtifactError(
            f"{two}: lacks {len(missing):,} of the {len(first):,} rows of "
            f"{one} and has {len(left):,} others; the first difference is line {alone.number} of "
            f"{path}: {alone.key[:200]}: score both on the same file"
        )
    return [line for line in found if line is not None]
