"""The training loop, `fit`, for pretraining and all tasks.

Updates.update (updates.py) makes one update: it adds up the gradients of the micro-batches, and AdamW (Optimizer)
applies them at the learning rate of the step (OptimizerSettings.rate_share).

The batches of a step are a pure function of its number, and dropout is a pure function of (seed, step), so a
checkpoint holds no random state. A resumed run loads the newest checkpoint, continues with the next step, and ends in
the same bits.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from signal import Signals

import torch
from torch import nn

from korbert.messages import Message
from korbert.system import Interrupted, World, all_reduce_max, handled_signals, track
from korbert.training import checkpoints
from korbert.training.devices import autocast, choose_precision, memory_kept
from korbert.training.distributed import connected_processes
from korbert.training.feeding import StepBatches, prefetch_batches
from korbert.training.metric_files import MetricFiles
from korbert.training.plan import TrainingOutput, TrainingPlan
from korbert.training.updates import LossFunction, Updates

_RELEASE_EVERY = 50  # steps; see memory_kept

Evaluate = Callable[[nn.Module, int], Mapping[str, float]]
"""(model in evaluation mode, updates done) -> numbers; runs without gradients, in all processes."""


@dataclass(frozen=True, slots=True)
class FitResult:
    """first_step: updates done by earlier runs (0 without a checkpoint). heldout: the last result of `evaluate`."""

    first_step: int
    steps: int
    heldout: Mapping[str, float] = field(default_factory=dict)


def fit(
    model: nn.Module,
    batches: StepBatches,
    loss: LossFunction,
    plan: TrainingPlan,
    *,
    device: torch.device,
    output: TrainingOutput | None = None,
    evaluate: Evaluate | None = None,
    description: str = "training",
    row_workers: int = 0,
) -> FitResult:
    """Trains `model` in place: `plan.steps` updates, or those after the newest whole checkpoint of `output`.

    Under torchrun rank 0 writes, and the others read its checkpoints.
    Raises ModelError when a loss or gradient is not finite; ArtifactError when a checkpoint is of another run; and
    Interrupted after Ctrl-C or SIGTERM, when the current update is finished and saved: the same one in all processes.
    A second signal ends the run at once.
    """
    plan = replace(plan, precision=choose_precision(device, plan.precision))
    with (
        connected_processes(device) as here,
        memory_kept(device) as release,
        handled_signals() as arrived,
        ExitStack() as files,
    ):
        updates = Updates(model.to(device), loss, plan, device, here)
        run = _Run(updates, plan, here, output or TrainingOutput(), evaluate, files)
        first_step = run.done
        advance = files.enter_context(track(description, plan.steps, "steps", done=first_step))
        number = 0  # of a signal
        remaining = range(first_step, plan.steps)
        with prefetch_batches(batches, remaining, workers=row_workers, pin=device.type == "cuda") as steps:
            for step, micro_batches, waited in steps:
                started = time.perf_counter()
                updates.update(step, micro_batches)
                run.after_update(step + 1, started, waited)
                advance(1, run.figures)
                number = all_reduce_max(arrived() or 0)
                if number:
                    break
                if step % _RELEASE_EVERY == 0:
                    release()
        if number:
            raise Interrupted(Signals(number), run.saved_at_the_end(description))
    model.eval()
    return FitResult(first_step, run.done, run.heldout)


@dataclass
class _Run:
    """A run in progress, from the newest checkpoint: what is due after each update. One process writes the files.

    stack: closes them. done: updates; figures: of the last line of metrics, for the progress bar; heldout: of the last
    evaluation.
    """

    updates: Updates
    plan: TrainingPlan
    here: World
    output: TrainingOutput
    evaluate: Evaluate | None
    stack: ExitStack

    def __post_init__(self) -> None:
        self.figures = ""
        self.done = 0
        self.heldout: Mapping[str, float] = {}
        checkpointing = self.output.checkpoints
        checkpoint = checkpoints.load_newest(checkpointing.folder) if checkpointing else None
        if checkpoint is not None:
            self.heldout = self.updates.restore(checkpoint)
            self.done = checkpoint.step
        self._saved_step = self.done
        self._saved_at = checkpointing.clock() if checkpointing else 0.0
        self._seconds = self._waited = 0.0  # since the last line of metrics
        self._logged_pieces = self.updates.pieces
        output = self.output if self.here.is_main_process else TrainingOutput()
        self._files = MetricFiles(output, self.done, self.stack)

    def after_update(self, done: int, started: float, waited: float) -> None:
        """Does what is due: a line of metrics, an evaluation, a checkpoint, in this order.

        done: updates so far. started: when the update began. waited: seconds spent waiting for its micro-batches.
        """
        self.done = done
        checkpointing = self.output.checkpoints
        log = done == 1 or self._due(self.plan.log_every)
        late = (
            checkpointing is not None
            and self.here.is_main_process
            and checkpointing.clock() - self._saved_at >= checkpointing.every_seconds
        )
        # The same in all processes, which check for finite values at the same steps; the clock of rank 0 counts.
        save = bool(all_reduce_max(int(checkpointing is not None and (self._due(checkpointing.every_steps) or late))))
        evaluated = self.evaluate is not None and self._due(self.plan.evaluate_every)
        if log or evaluated or save:
            self.updates.check_finite(self._saved_step)  # waits for the device: the seconds are of finished work
        self._seconds += waited + time.perf_counter() - started
        self._waited += waited

        if log:
            pieces = self.updates.pieces - self._logged_pieces
            self._logged_pieces = self.updates.pieces
            means = {"pieces": self.updates.pieces, **self.updates.means()}
            self._files.train(done, means, self._seconds, self._waited, pieces)
            speed = f", {pieces / self._seconds:,.0f} pieces/s" if pieces else ""
            self.figures = f"loss {means['loss']:.4g}, rate {means['learning_rate']:.3g}{speed}"
            self._seconds = self._waited = 0.0
        if self.evaluate and evaluated:
            with torch.no_grad(), autocast(self.updates.device, self.plan.precision):
                self.heldout = dict(self.evaluate(self.updates.model.eval(), done))
            self._files.write("heldout", done, {"pieces": self.updates.pieces, **self.heldout})
        if save:
            self._save()

    def saved_at_the_end(self, description: str) -> str:
        """Saves a run that a signal ends. Returns what is saved, as a message; empty without checkpoints."""
        if not self.output.checkpoints or not self.done:
            return ""
        if self.done > self._saved_step:
            self.updates.check_finite(self._saved_step)
            self._save()
        return Message("{description}: step {step:,} is saved", description=description, step=self.done)

    def _due(self, interval: int) -> bool:
        return self.done == self.plan.steps or (interval > 0 and self.done % interval == 0)

    def _save(self) -> None:
        checkpointing = self.output.checkpoints
        assert checkpointing is not None
        if self.here.is_main_process:
            if self._files.metrics:
                self._files.metrics.sync()
            checkpoints.save(checkpointing.folder, self.updates.checkpoint(self.done, self.heldout), checkpointing.keep)
        self._saved_step = self.done
        self._saved_at = checkpointing.clock()
