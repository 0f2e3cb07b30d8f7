"""Pretraining runs, finished or still running: the log of each by step, pieces and seconds, and their comparison."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from korbert.errors import ArtifactError, SettingsError
from korbert.messages import Message
from korbert.pipelines.artifacts import json_lines, store
from korbert.system import JsonObject

_TOKENIZER = Path("tokenizer", "korbert_tokenizer.json")


@dataclass(frozen=True)
class TrainingLog:
    """Lines of metrics.jsonl by kind. timing: train lines of timing.jsonl, over all sessions; may be empty."""

    train: list[JsonObject]
    heldout: list[JsonObject]
    timing: list[JsonObject]

    @classmethod
    def of(cls, metrics: Sequence[JsonObject], timing: Iterable[JsonObject]) -> "TrainingLog":
        """Sorts the lines of metrics.jsonl and timing.jsonl by kind."""
        train, heldout = ([line for line in metrics if line["kind"] == kind] for kind in ("train", "heldout"))
        return cls(train, heldout, [line for line in timing if line["kind"] == "train"])

    def seconds(self, lines: Sequence[JsonObject]) -> NDArray[np.float64] | None:
        """Training time in seconds at each line, without evaluations and checkpoints; None if not measured."""
        if not self.timing:
            return None
        measured = [0, *(line["step"] for line in self.timing)]
        elapsed = np.cumsum([0.0, *(line["seconds"] for line in self.timing)])
        return np.asarray(np.interp([line["step"] for line in lines], measured, elapsed))

    def pieces(self, lines: Sequence[JsonObject]) -> NDArray[np.float64]:
        """Pieces trained on up to the step of each line, without padding."""
        counted = sorted({(0, 0), *((line["step"], line["pieces"]) for line in (*self.train, *self.heldout))})
        steps, pieces = np.array(counted).T
        return np.asarray(np.interp([line["step"] for line in lines], steps, pieces))

    @property
    def waiting(self) -> float | None:
        """Share of the time that the device waited for rows; None if not measured."""
        seconds = sum(line["seconds"] for line in self.timing)
        return sum(line["waited_seconds"] for line in self.timing) / seconds if seconds else None

    @property
    def pieces_per_second(self) -> float | None:
        """Mean over all measured steps; None if not measured."""
        seconds = sum(line["seconds"] for line in self.timing)
        pieces = sum(line["seconds"] * line["pieces_per_second"] for line in self.timing)
        return pieces / seconds if seconds else None


@dataclass(frozen=True)
class PretrainingRun:
    """A pretraining run with at least one held-out evaluation.

    pieces, seconds: pieces trained on, and seconds of training, until each held-out evaluation; seconds is None if not
    measured. parameters: number of parameters; None until the run is finished.
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

    @classmethod
    def open(cls, folder: Path, name: str) -> "PretrainingRun":
        """Reads the run in a folder. ArtifactError if it has no held-out figures yet, or is damaged."""
        metrics = folder / "metrics.jsonl"
        timing = json_lines(folder / "timing.jsonl", growing=True)
        log = TrainingLog.of(list(json_lines(metrics, growing=True)), timing)
        if not log.heldout:
            raise ArtifactError(
                "{file}: no held-out figures yet: wait for the first evaluation of this run", file=metrics
            )
        tokenizer = (
            store.read_json(folder / "model" / _TOKENIZER)
            or store.read_json(folder.parent / "vocab" / _TOKENIZER)
            or {}
        )
        return cls(
            name=name,
            folder=folder,
            log=log,
            pieces=log.pieces(log.heldout),
            seconds=log.seconds(log.heldout),
            parameters=(store.read_json(folder / "scores.json") or {}).get("parameters"),
            vocab_size=tokenizer.get("vocab_size"),
            tokenizer=tokenizer.get("digest"),
        )

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
    return [PretrainingRun.open(folder, name) for folder, name in zip(artifacts, distinct_names(paths), strict=True)]


def _artifact_of(folder: Path) -> Path:
    """Returns the folder with the metrics of a run: the given one, or its pretrain or pretrain.partial."""
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
    """Returns the paths without the folders that all of them begin or end with.

    artifacts/mine/pretrain, artifacts/demo/pretrain -> mine, demo.
    """
    parts = [folder.parts for folder in folders]
    while len({path_parts[0] for path_parts in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [path_parts[1:] for path_parts in parts]
    while len({path_parts[-1] for path_parts in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [path_parts[:-1] for path_parts in parts]
    return ["/".join(path_parts) for path_parts in parts]


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


def time_axis(longest: float) -> tuple[float, Message]:
    """The time unit in seconds, and its name, for an axis up to `longest` seconds."""
    for size, name in ((3600.0, Message("hours")), (60.0, Message("minutes"))):
        if longest >= 2 * size:
            return size, name
    return 1.0, Message("seconds")
