"""The training plan, and where a run's files go."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from korbert.training.settings import OptimizerSettings, PrecisionName


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """The training plan. With model and data it determines the outcome; checkpoints of another plan are refused.

    log_every: updates between lines of metrics. evaluate_every: updates between evaluations; 0: only after the last.
    rate_factors: parameter -> its learning rate as a multiple of that of the others.
    """

    steps: int
    optimizer: OptimizerSettings
    seed: int
    precision: PrecisionName = "auto"
    log_every: int = 10
    evaluate_every: int = 0
    rate_factors: Mapping[str, float] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The plan as JSON, as a checkpoint records it."""
        optimizer = {f"optimizer.{name}": value for name, value in self.optimizer.model_dump(mode="json").items()}
        names = (own.name for own in fields(self) if own.name != "optimizer")
        return {name: getattr(self, name) for name in names} | optimizer


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Where checkpoints go, and how many are kept.

    One is written every `every_steps` updates, after the last update, when `every_seconds` have passed since the one
    before, and when a signal ends the run. clock: seconds since any fixed moment. The trained bytes depend on none of
    this.
    """

    folder: Path
    every_steps: int
    keep: int = 2
    every_seconds: float = 300.0
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class TrainingOutput:
    """The files that `fit` writes (docs/formats.md); None: not written. The trained bytes depend on none of them.

    metrics: JSON lines without times: means since the line before, after the first, every `log_every`-th and the last
    update; held-out figures; steps left out. Resuming truncates the lines after the checkpoint.
    timing: JSON lines of each start, and of the seconds since the line before, without evaluation and checkpoints. The
    first line includes the start of the processes that make rows; a GPU may still have had work then.
    tensorboard: a folder of event files.
    """

    checkpoints: Checkpointing | None = None
    metrics: Path | None = None
    timing: Path | None = None
    tensorboard: Path | None = None

    @classmethod
    def below(cls, folder: Path, checkpoint_every: int) -> Self:
        """All four in one folder: checkpoints/, metrics.jsonl, timing.jsonl, tensorboard/."""
        checkpoints = Checkpointing(folder / "checkpoints", checkpoint_every)
        return cls(checkpoints, folder / "metrics.jsonl", folder / "timing.jsonl", folder / "tensorboard")
