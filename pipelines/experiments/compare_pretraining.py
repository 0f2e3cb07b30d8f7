"""Comparison of pretraining runs, finished or still running."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from korbert.errors import ArtifactError, SettingsError
from korbert.messages import Message
from korbert.pipelines.artifacts import json_lines, store
from korbert.pipelines.experiments.training_log import TrainingLog

_TOKENIZER = Path("tokenizer", "korbert_tokenizer.json")


@dataclass(frozen=True)
class PretrainingRun:
    """A pretraining run with at least one held-out evaluation. parameters: None until it is finished.

    pieces, seconds: trained on and spent until each held-out evaluation; seconds: None if not measured.
    vocab_size, tokenizer: size and digest of the tokenizer; None if not found.
    """

    name: str
    folder: Path
    log: TrainingLog
    pieces: NDArray[np.float64]
    seconds: NDArray[np.float64] | None
    parameters: int | None
    vocab_size: int | None
    tokenizer: str | None

    def at(self, key: str, position: float, axis: NDArray[np.float64]) -> float | None:
        """A held-out figure at a position on `pieces` or `seconds`, interpolated linearly between evaluations.

        None before the first evaluation and after the last.
        """
        points = [(x, line[key]) for x, line in zip(axis, self.log.heldout, strict=True) if line.get(key) is not None]
        if not points or not points[0][0] <= position <= points[-1][0]:
            return None
        return float(np.interp(position, [x for x, _ in points], [value for _, value in points]))


def open_runs(folders: Sequence[Path]) -> list[PretrainingRun]:
    """Opens the runs in these folders: pretrain artifacts, finished or partial, or recipe folders.

    Raises SettingsError for fewer than two runs or a duplicate, ArtifactError if a folder is not a pretraining run, has
    no held-out figures yet, or is damaged.
    """
    if len(folders) < 2:
        raise SettingsError(
            Message(
                "{count} run to compare: name at least two",
                "{count} runs to compare: name at least two",
                count=len(folders),
            )
        )
    artifacts = [_artifact_of(folder) for folder in folders]
    paths = [folder.resolve() for folder in artifacts]
    for number, path in enumerate(paths):
        if path in paths[:number]:
            raise SettingsError("{folder}: is named twice: name different runs", folder=folders[number])
    return [_open_run(folder, name) for folder, name in zip(artifacts, distinct_names(paths), strict=True)]


def _artifact_of(folder: Path) -> Path:
    """The folder that holds the metrics of the run."""
    names = ("pretrain", "pretrain.partial")
    for artifact in (folder, *(folder / name for name in names)):
        if (artifact / "metrics.jsonl").is_file() and artifact.name in names:
            return artifact
    fault = Message("is not a pretraining run") if folder.exists() else Message("is absent")
    if record := store.read_json(folder / store.RECORD):
        fault = Message("is an artifact of {stage}", stage=record.get("stage"))
    raise ArtifactError(
        "{folder}: {fault}: name a folder such as artifacts/RECIPE/pretrain, pretrain.partial, or models/mood",
        folder=folder, fault=fault,
    )  # fmt: skip


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """The paths without what all begin and end with: artifacts/mine/pretrain, artifacts/demo/pretrain -> mine, demo."""
    parts = [folder.parts for folder in folders]
    while len({own[0] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[1:] for own in parts]
    while len({own[-1] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[:-1] for own in parts]
    return ["/".join(own) for own in parts]


def _open_run(folder: Path, name: str) -> PretrainingRun:
    metrics = folder / "metrics.jsonl"
    timing = json_lines(folder / "timing.jsonl", growing=True)
    log = TrainingLog.of(list(json_lines(metrics, growing=True)), timing)
    if not log.heldout:
        raise ArtifactError("{file}: no held-out figures yet: wait for the first evaluation of this run", file=metrics)
    tokenizer = (
        store.read_json(folder / "model" / _TOKENIZER) or store.read_json(folder.parent / "vocab" / _TOKENIZER) or {}
    )
    return PretrainingRun(
        name=name,
        folder=folder,
        log=log,
        pieces=log.pieces(log.heldout),
        seconds=log.seconds(log.heldout),
        parameters=(store.read_json(folder / "scores.json") or {}).get("parameters"),
        vocab_size=tokenizer.get("vocab_size"),
        tokenizer=tokenizer.get("digest"),
    )


def difference(runs: Sequence[PretrainingRun]) -> str:
    """Why the losses of the runs are not comparable; "" if they are."""
    if len({run.tokenizer for run in runs}) > 1:
        if len({run.vocab_size for run in runs}) > 1:
            return Message("These runs have vocabularies of different sizes: losses and accuracies are not comparable.")
        return Message("These runs have different tokenizers: losses and accuracies are not comparable.")
    last = [run.log.heldout[-1] for run in runs]
    if len({(line["unigram_loss"], line.get("mlm_count")) for line in last}) > 1:
        return Message(
            "These runs were evaluated on different held-out rows: losses and accuracies are not comparable."
        )
    return ""
