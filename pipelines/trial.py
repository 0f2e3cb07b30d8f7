"""A short trial of pretraining: real training steps, from which `korbert plan` forecasts the duration of the run."""

import math
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.interruption import Interrupted
from korbert.modeling import load_model
from korbert.pretraining import Phase, SpecialIds, evaluate
from korbert.pretraining.objectives.losses import Loss
from korbert.training import Batch, Checkpointing, TrainingOutput, fit
from pipelines.machine import product_rate
from pipelines.stages.pretrain import evaluation_batches, model_and_loss, piece_counts, training_plan
from pipelines.stages.settings import PretrainStage

__all__ = ["PhaseTrial", "Subject", "Trial", "measure", "of_fewer_rows", "spread", "write_made_up"]

_WARM, _LEAST = 2, 3  # calls of the watch that are discarded, and the least number that counts
_COUNTED = 0.75  # share of the trial's time for steps that count
_SLOWER = 3  # assumed slowdown of training against the matrix products of `product_rate`
_GOLDEN = (math.sqrt(5) - 1) / 2
_MADE_UP_PIECES = 500_000
_EVALUATED = (8, 256)  # minimum and maximum rows of a timed evaluation


@dataclass(frozen=True, slots=True)
class PhaseTrial:
    """Measured steps of a phase, without warm-up. rows: per step; fewer than in the run if steps take long."""

    steps: int
    rows: int
    pieces: int
    seconds: float

    @property
    def pieces_a_second(self) -> float:
        return self.pieces / self.seconds


@dataclass(frozen=True, slots=True)
class Trial:
    """Measurements of a trial. evaluation, checkpoint: seconds of one. preparing: seconds before the first step.

    memory: peak bytes, of the process on a CPU, of tensors on a GPU. product_rate: see `product_rate`.
    """

    phases: tuple[PhaseTrial, ...]
    evaluation: float
    checkpoint: float
    preparing: float
    memory: int
    product_rate: float


@dataclass(frozen=True, slots=True)
class Subject:
    """The pretraining to try: `settings` on the shards in `folder`, in these phases.

    flop_a_step: operations per step of each phase. most_pieces: maximum pieces of a micro-batch that fit into memory.
    teacher: folder of the teacher model for "distill".
    """

    settings: PretrainStage
    folder: Path
    ids: SpecialIds
    phases: Sequence[Phase]
    flop_a_step: Sequence[float]
    most_pieces: float
    teacher: Path | None = None


def measure(subject: Subject, device: torch.device, seconds: float, scratch: Path) -> Trial:
    """Trains for about `seconds`, divided among the phases, on steps spread over each phase.

    If whole steps would take too long, they get fewer rows. scratch: an empty folder for one checkpoint, on the same
    disk as the artifacts.
    """
    began, settings = time.perf_counter(), subject.settings
    teacher = load_model(subject.teacher, "pretraining")[0] if subject.teacher else None
    model, loss = model_and_loss(settings, subject.ids.vocab_size, teacher)
    unigram = piece_counts(subject.folder)
    held_out = evaluation_batches(settings, subject.folder, subject.ids, unigram)
    preparing = time.perf_counter() - began

    # Time an evaluation on as many rows as take a tenth of the time, by the operations of a forward pass.
    rate, share = product_rate(device, settings.precision), seconds / len(subject.phases)
    a_row = _SLOWER / rate * subject.flop_a_step[0] / 3 / subject.phases[0].batch_size
    few = min(max(int(share / 10 / a_row), _EVALUATED[0]), _EVALUATED[1])
    sample = evaluation_batches(settings.model_copy(update={"heldout_rows": few}), subject.folder, subject.ids, unigram)
    part = sum(batch["pieces"] for batch in held_out) / sum(batch["pieces"] for batch in sample)

    watches = []
    for number, (phase, flop) in enumerate(zip(subject.phases, subject.flop_a_step, strict=True)):
        expected = _SLOWER / rate * flop
        most_rows = int(subject.most_pieces / settings.phases[number].length)
        room = share / (_WARM + _LEAST) / expected  # steps for each call of the watch
        tried = of_fewer_rows(phase, room, most_rows)
        likely = share / expected * phase.batch_size / tried.batch_size
        watch = _Watch(_COUNTED * share, tried, loss, *((sample, unigram, scratch) if number == 0 else ()))
        watch.every = 1 if device.type == "cpu" else min(max(int(room), 1), settings.log_every)
        _train(model, settings, watch, int(4 * likely) + 2 * (_WARM + _LEAST), device)
        watches.append(watch)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Trial(
        phases=tuple(watch.measured() for watch in watches),
        evaluation=watches[0].evaluation * part,
        checkpoint=watches[0].checkpoint(),
        preparing=preparing,
        memory=torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak,
        product_rate=rate,
    )


def _train(model: nn.Module, settings: PretrainStage, watch: "_Watch", most: int, device: torch.device) -> None:
    """Trains until the watch ends it, or for `most` of its calls."""
    plan = replace(training_plan(settings), steps=most * watch.every, evaluate_every=watch.every, on_divergence="stop")
    output = TrainingOutput()
    if watch.scratch:
        output = TrainingOutput(Checkpointing(watch.scratch, plan.steps, every_seconds=1.0, clock=watch.saves))
    try:
        fit(
            model,
            watch.batches,
            watch.loss,
            plan,
            device=device,
            output=output,
            evaluate=watch,
            description="trial, at most",
        )
    except _Over:
        pass
    except Interrupted as error:  # the checkpoint is about to be removed
        raise Interrupted(error.number) from None


class _Over(Exception):
    """The time of the trial is over."""


class _Watch:
    """Called by `fit` every few steps of a phase to record their time. Ends the trial by raising _Over.

    every: steps between calls; each call waits for the device, so short steps on a GPU get as many as in the run.
    seconds: from the first step that counts to the end. sample, unigram: data of the timed evaluation. scratch: folder
    of one checkpoint, whose time is part of the steps after it.
    """

    def __init__(
        self,
        seconds: float,
        phase: Phase,
        loss: Loss,
        sample: Sequence[Batch] = (),
        unigram: NDArray[np.int64] | None = None,
        scratch: Path | None = None,
    ) -> None:
        self.batches, self.every, self.scratch = _Spread(phase), 1, scratch
        self.evaluation = 0.0
        self._loss = loss
        self._sample, self._unigram = sample, unigram
        self._laps: list[tuple[float, int]] = []  # seconds and pieces
        self._saving: tuple[float, int] | None = None
        self._calls = self._pieces = 0
        self._seconds, self._ends, self._left = seconds, math.inf, time.perf_counter()

    def loss(self, model: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """The loss of the run; also counts the pieces."""
        self._pieces += batch["pieces"]
        return self._loss(model, batch)

    def saves(self) -> float:
        """A clock that triggers one checkpoint, after the first measurement."""
        return float(bool(self._laps))

    def __call__(self, model: nn.Module, done: int) -> Mapping[str, float]:
        now = time.perf_counter()
        lap = (now - self._left, self._pieces)
        self._calls += 1
        if self.scratch and not self._saving and any(self.scratch.glob("step-*")):
            self._saving = lap
        elif self._calls > _WARM:
            self._laps.append(lap)
        if self._calls == _WARM:
            self._evaluate(model)
            self._ends = time.perf_counter() + self._seconds
        if len(self._laps) >= _LEAST and now >= self._ends:
            raise _Over
        self._pieces, self._left = 0, time.perf_counter()
        return {}

    def _evaluate(self, model: nn.Module) -> None:
        """Times an evaluation, twice if it is short, as the first one of a run is slower than the others."""
        for _ in range(2):
            if self._unigram is not None and self.evaluation < self._seconds / 10:
                began = time.perf_counter()
                evaluate(model, self._sample, self._unigram, self._loss)
                self.evaluation = time.perf_counter() - began

    def measured(self) -> PhaseTrial:
        """The measurement over all steps that count."""
        seconds, pieces = map(sum, zip(*self._laps, strict=True))
        return PhaseTrial(len(self._laps) * self.every, self.batches.phase.batch_size, int(pieces), seconds)

    def checkpoint(self) -> float:
        """Seconds of the checkpoint."""
        seconds, pieces = self._saving or (0.0, 0)
        return max(0.0, seconds - pieces / self.measured().pieces_a_second)


@dataclass(frozen=True, slots=True)
class _Spread:
    """The batches of steps spread over a phase, as `fit` takes them."""

    phase: Phase

    def __call__(self, step: int) -> list[Batch]:
        phase = self.phase
        return phase.rows.batch(spread(step, phase.steps), phase.batch_size, phase.micro_batches)


def spread(number: int, total: int) -> int:
    """Item `number` of a sequence that covers range(total) ever more evenly (golden ratio)."""
    return int(number * _GOLDEN % 1 * total)


def of_fewer_rows(phase: Phase, share: float, most_rows: int) -> Phase:
    """The phase with that share of its rows per step (all from 0.5 on), in micro-batches that fit into memory."""
    rows = phase.batch_size if share >= 0.5 else max(1, int(phase.batch_size * share))
    together = max(1, min(-(-phase.batch_size // phase.micro_batches), most_rows))
    return replace(
        phase, batch_size=rows, steps=phase.steps * phase.batch_size // rows, micro_batches=-(-rows // together)
    )


def write_made_up(folder: Path, ids: SpecialIds, seed: int) -> None:
    """Writes shards of random ids with full rows: each piece is a sentence, so that examples may end anywhere."""
    rng = np.random.default_rng(seed)
    pieces = rng.integers(ids.first_piece, ids.vocab_size, size=(2, _MADE_UP_PIECES // 2), dtype=np.int32)
    table = pa.table(
        {
            "id": ["made-up:0", "made-up:1"],
            "source": ["made-up"] * 2,
            "input_ids": pa.array(list(pieces), pa.list_(pa.int32())),
            "boundaries": pa.array([np.full(row.size, 3, np.uint8) for row in pieces], pa.list_(pa.uint8())),
        }
    )
    for part in ("train", "heldout"):
        (folder / part).mkdir(parents=True)
        with pa.ipc.new_stream(str(folder / part / "part-00000.arrow"), table.schema) as stream:
            stream.write_table(table)
    counts = np.bincount(pieces.reshape(-1), minlength=ids.vocab_size)
    pq.write_table(pa.table({"count": counts}), folder / "pieces.parquet")
