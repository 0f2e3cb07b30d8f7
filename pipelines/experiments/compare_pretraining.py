"""Comparison of pretraining runs, finished or still running."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from korbert.errors import ArtifactError, SettingsError
from korbert.pipelines.artifacts.store import RECORD, Json, read_json
from korbert.pipelines.reports.training_log import TrainingLog

_STAGE = "pretrain"
_TOKENIZER = Path("tokenizer", "korbert_tokenizer.json")


@dataclass(frozen=True)
class Run:
    """A pretraining run. parameters: None until it is finished.

    vocab_size, tokenizer: size and digest of the tokenizer; None if not found.
    """

    name: str
    folder: Path
    log: TrainingLog
    parameters: int | None
    vocab_size: int | None
    tokenizer: str | None

    @property
    def heldout(self) -> list[Json]:
        """Its held-out evaluations, at least one."""
        return self.log.heldout

    @cached_property
    def pieces(self) -> NDArray[np.float64]:
        """Pieces trained on at each held-out evaluation."""
        return self.log.pieces(self.heldout)

    @cached_property
    def seconds(self) -> NDArray[np.float64] | None:
        """Training time at each held-out evaluation; None if not measured."""
        return self.log.seconds(self.heldout)

    def at(self, key: str, position: float, axis: NDArray[np.float64]) -> float | None:
        """A held-out figure at a position on `pieces` or `seconds`, interpolated linearly between evaluations.

        None before the first evaluation and after the last.
        """
        points = [(x, line[key]) for x, line in zip(axis, self.heldout, strict=True) if line.get(key) is not None]
        if not points or not points[0][0] <= position <= points[-1][0]:
            return None
        return float(np.interp(position, [x for x, _ in points], [value for _, value in points]))


def open_runs(folders: Sequence[Path]) -> list[Run]:
    """Opens the runs in these folders: pretrain artifacts, finished or partial, their model/, or recipe folders.

    Raises SettingsError for fewer than two runs or a duplicate, ArtifactError if a folder is not a pretraining run, has
    no held-out figures yet, or is damaged.
    """
    if len(folders) < 2:
        raise SettingsError(f"{len(folders)} run{'' if len(folders) == 1 else 's'} to compare: name at least two")
    artifacts = [artifact_of(folder) for folder in folders]
    for number, folder in enumerate(artifacts):
        if folder.resolve() in [other.resolve() for other in artifacts[:number]]:
            raise SettingsError(f"{folders[number]}: is named twice: name different runs")
    # Names leave out "pretrain" and "pretrain.partial", unless nothing else differs.
    outer = [folder.resolve().parent for folder in artifacts]
    names = distinct_names(outer if len(set(outer)) == len(outer) else [folder.resolve() for folder in artifacts])
    return [open_run(folder, name) for folder, name in zip(artifacts, names, strict=True)]


def artifact_of(folder: Path) -> Path:
    """The folder that holds the metrics of the run."""
    partial = f"{_STAGE}.partial"
    near = [folder, folder / _STAGE, folder / partial, folder.with_name(f"{folder.name}.partial")]
    for artifact in [*near, *([folder.parent] if folder.name == "model" else [])]:
        if (artifact / "metrics.jsonl").is_file() and artifact.name in (_STAGE, partial):
            return artifact
    record = read_json(folder / RECORD)
    what = f"an artifact of {record.get('stage')}" if record else "no pretraining run" if folder.exists() else "absent"
    raise ArtifactError(f"{folder}: is {what}: name a folder such as artifacts/RECIPE/pretrain, or pretrain.partial")


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """The paths without what they begin with in common: models/mood, models/other -> mood, other."""
    common = os.path.commonpath(folders)
    names = [os.path.relpath(folder, common) for folder in folders]
    return list(map(str, folders)) if "." in names else names


def open_run(folder: Path, name: str) -> Run:
    metrics = folder / "metrics.jsonl"
    log = TrainingLog.of(_lines(metrics), _lines(folder / "timing.jsonl"))
    if not log.heldout:
        raise ArtifactError(f"{metrics}: no held-out figures yet: wait for the first evaluation of this run")
    tokenizer = read_json(folder / "model" / _TOKENIZER) or read_json(folder.parent / "vocab" / _TOKENIZER) or {}
    return Run(
        name=name,
        folder=folder,
        log=log,
        parameters=(read_json(folder / "scores.json") or {}).get("parameters"),
        vocab_size=tokenizer.get("vocab_size"),
        tokenizer=tokenizer.get("digest"),
    )


_NEEDED = {
    "metrics.jsonl": {
        "train": ("step", "pieces"),
        "heldout": ("step", "pieces", "unigram_loss"),
    },
    "timing.jsonl": {"train": ("step", "seconds", "pieces_per_second"), "start": ("step",)},
}


def _lines(path: Path) -> list[Json]:
    """The JSON lines of a file; none if there is no file. An unfinished last line is being written and is left out."""
    lines: list[Json] = []
    needed = _NEEDED[path.name]
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True) if path.is_file() else [], 1):
        if not line.endswith(b"\n"):
            break
        try:
            value = json.loads(line)
            for key in needed[value["kind"]]:
                float(value[key] if path.name == "timing.jsonl" else value[key] or 0)  # JSON has no NaN: null
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ArtifactError(
                f"{path}: line {number} is damaged: rebuild this artifact with --rebuild, or leave this run out"
            ) from None
        lines.append(value)
    return lines


def difference(runs: Sequence[Run]) -> str:
    """Why the losses of the runs are not comparable; "" if they are."""
    if len({run.tokenizer for run in runs}) > 1:
        sizes = {run.vocab_size for run in runs}
        what = "vocabularies of different sizes" if len(sizes) > 1 else "different tokenizers"
        return f"These runs have {what}: losses and accuracies are not comparable."
    if len({(run.heldout[-1]["unigram_loss"], run.heldout[-1].get("mlm_count")) for run in runs}) > 1:
        return "These runs were evaluated on different held-out rows: losses and accuracies are not comparable."
    return ""
