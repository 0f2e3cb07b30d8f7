"""Fine-tuning on a few rows, for tests of stages and commands."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from korbert.pipelines.artifacts.stage import Runtime, StageInputs
from korbert.pipelines.stages.finetuning import run
from korbert.tasks.kinds import KINDS

PARTS = ("train", "valid", "test")
TEXTS = [
    "정말 재미있는 영화였다", "시간이 아깝다", "최고의 연기였다", "이야기가 지루했다", "다시 보고 싶다",
    "음악이 아름답다", "돈이 아깝다", "배우가 어색하다", "가족과 함께 보았다", "결말이 허무하다",
]  # fmt: skip
MOODS = ["긍정", "부정", "긍정", "부정", "긍정", "긍정", "부정", "부정", "긍정", "부정"]


WORDS = ["영화", "시간", "연기", "이야기", "보고", "음악", "돈", "배우", "가족", "결말"]  # one of each text
Kit = tuple[str, list[str], list[list[str]]]  # a kind, and the header and the rows of a table for it


def moods(header: Sequence[str] = ("text", "label")) -> Kit:
    return "classification", [*header], [[text, mood] for text, mood in zip(TEXTS, MOODS, strict=True)]


def spans() -> Kit:
    rows = []
    for text, word in zip(TEXTS, WORDS, strict=True):
        span = {"start": text.index(word), "end": text.index(word) + len(word), "label": "것"}
        rows.append([text, json.dumps([span], ensure_ascii=False)])
    return "token-classification", ["text", "spans"], rows


def numbers() -> Kit:
    rows = [[text, TEXTS[-place], str(place / 2)] for place, text in enumerate(TEXTS)]
    return "regression", ["sentence1", "sentence2", "score"], rows


def choices() -> Kit:
    rows = [[text, *(TEXTS[place - at] for at in (1, 2, 3)), str(place % 3)] for place, text in enumerate(TEXTS)]
    return "multiple-choice", ["text", "choice1", "choice2", "choice3", "label"], rows


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], encoding: str = "utf-8") -> Path:
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def fine_tune(
    kind: str, start: Path, output: Path, files: Mapping[str, Path], encoded: Path | None = None,
    stage: Callable[..., Any] = run, **settings: Any,
) -> Any:  # fmt: skip
    """Runs a task on files by part, from the model in `start`; the result of the stage."""
    names = {part: str(path) for part, path in files.items()}
    section = KINDS[kind].section_class.model_validate({"init": str(start), **names, **settings})
    read = {part: (path,) for part, path in files.items()} | {"init": tuple(sorted(start.iterdir()))}
    output.mkdir(parents=True, exist_ok=True)
    runtime = Runtime(output.parent, output.parent, workers=1, device="cpu")
    return stage(section, StageInputs({}, read, encoded), output, runtime)


def scores_of(folder: Path) -> dict[str, dict[str, float]]:
    """Name of a model or baseline -> metric -> score of its last seed."""
    rows = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["rows"]
    return {row["name"]: row["scores"] for row in rows}
