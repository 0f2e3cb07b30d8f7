"""How a model is trained: optimizer and learning rate, the plan of a run, and where its files go. Imports no torch."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from korbert.messages import Message

PrecisionName = Literal["auto", "fp32", "bf16"]  # of training
InferencePrecision = Literal["auto", "fp32", "bf16", "int8"]
ScheduleKind = Literal["linear", "wsd"]


class OptimizerSettings(BaseModel, frozen=True, extra="forbid"):
    """The optimizer and its learning rate schedule."""

    kind: Literal["adamw", "muon"] = Field(
        "adamw",
        description="muon: orthogonal updates of the layers' matrices, as large as AdamW's, which takes all others",
        exclude_if=lambda kind: kind == "adamw",  # records from before keep their meaning
    )
    learning_rate: float = Field(1e-3, gt=0, description="peak learning rate, reached at the end of warmup")
    weight_decay: float = Field(0.01, ge=0, description="decoupled, times the learning rate; not of norms and biases")
    beta1: float = Field(0.9, ge=0, lt=1, description="decay rate of the gradient's first moment")
    beta2: float = Field(0.98, ge=0, lt=1, description="that of its second moment (Liu et al. 2019, 3.1)")
    epsilon: float = Field(1e-6, gt=0, description="added to the square root of the second moment")
    max_grad_norm: float = Field(1.0, gt=0, description="gradient clipping: maximum L2 norm over all parameters")
    warmup_share: float = Field(0.06, ge=0, lt=1, description="share of steps used for learning rate warmup")
    schedule: ScheduleKind = Field(
        "linear", description="after warmup: linear decay to zero; wsd: the peak rate, then decay over decay_share"
    )
    decay_share: float = Field(0.2, gt=0, le=1, description="wsd only: share of steps, at the end, of the decay")

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.schedule == "wsd" and self.warmup_share + self.decay_share > 1:
            raise ValueError(
                Message(
                    "warmup_share {warmup_share} + decay_share {decay_share} > 1: lower one of them",
                    warmup_share=self.warmup_share,
                    decay_share=self.decay_share,
                )
            )
        return self

    def rate_share(self, step: int, steps: int) -> float:
        """The learning rate of update `step` (0-based, of `steps`) as a share of the peak, in (0, 1].

        The rate rises linearly over the first ceil(warmup_share x steps) updates. Then it falls, so that update `steps`
        would have rate 0; no update has rate 0.

        linear: Devlin et al. 2019, A.2. wsd: stays at the peak and falls over the last ceil(decay_share x steps)
        updates as 1 - sqrt (warmup, stable, decay: Hu et al. 2024, MiniCPM, 4; that decay, over 20 % of the steps:
        Hagele et al. 2024, 3).
        """
        warmup = math.ceil(self.warmup_share * steps)
        if step < warmup:
            return (step + 1) / warmup
        if self.schedule == "linear":
            return (steps - step) / (steps - warmup)
        remaining = min(1.0, (steps - step) / min(steps - warmup, math.ceil(self.decay_share * steps)))
        return remaining / (1 + math.sqrt(1 - remaining))  # 1 - sqrt(1 - remaining), exact if small


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

    def record(self) -> dict[str, object]:
        """The plan as JSON, as a checkpoint records it."""
        optimizer = {f"optimizer.{name}": value for name, value in self.optimizer.model_dump(mode="json").items()}
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name != "optimizer"} | optimizer


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
        return cls(
            checkpoints=Checkpointing(folder / "checkpoints", checkpoint_every),
            metrics=folder / "metrics.jsonl",
            timing=folder / "timing.jsonl",
            tensorboard=folder / "tensorboard",
        )
