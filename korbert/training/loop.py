"""The training loop, `fit`, for pretraining and all tasks.

A learning rate becomes an update in Updates.update (updates.py), which _Run._step calls: it sets the rate of the step
(schedules.py), adds up the gradients of the micro-batches and applies them (optimizers.py).

The batches of a step are a pure function of its number, and dropout is one of (seed, step), so a checkpoint holds no
random state. A resumed run loads the newest checkpoint, continues with the next step, and ends in the same bits.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from signal import Signals

import torch
from torch import nn

from korbert.system import Interrupted, World, all_reduce_max, handled_signals, track
from korbert.training import checkpoints as storage
from korbert.training.devices import Batch, autocast, choose_precision, memory_kept
from korbert.training.distributed import joined
from korbert.training.feeding import Batches, fed
from korbert.training.plan import TrainingOutput, TrainingPlan
from korbert.training.records import Records, recorded
from korbert.training.updates import Loss, Updates

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
    batches: Batches,
    loss: Loss,
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
    with joined(device) as here, memory_kept(device) as release, handled_signals() as arrived:
        updates = Updates(model.to(device), loss, plan, device, here)
        run = _Run(updates, plan, here, output or TrainingOutput(), evaluate, description)
        first_step = run.done
        run.train(batches, row_workers, release, arrived)
    model.eval()
    return FitResult(first_step, run.done, run.heldout)


@dataclass
class _Run:
    """A run in progress, from the newest checkpoint: its updates, and the actions due after each. done: steps."""

    _updates: Updates
    _plan: TrainingPlan
    _here: World
    _output: TrainingOutput
    _evaluate: Evaluate | None
    _description: str

    def __post_init__(self) -> None:
        self._checkpoints, self._records = self._output.checkpoints, Records()
        self._seconds = self._waited = 0.0
        self._saved_step, self._saved_at = 0, self._checkpoints.clock() if self._checkpoints else 0.0
        self._figures = ""  # of the last line of metrics, for the progress bar
        self.done = 0
        self.heldout: Mapping[str, float] = {}
        checkpoint = storage.newest_of_all(self._checkpoints.folder) if self._checkpoints else None
        if checkpoint is not None:
            self.heldout = self._updates.restore(checkpoint)
            self.done = self._saved_step = checkpoint.step

    def train(
        self, batches: Batches, row_workers: int, release: Callable[[], None], arrived: Callable[[], int | None]
    ) -> None:
        """Trains from the current step to the end. One process writes files and shows progress.

        release: of memory_kept. arrived: the number of a signal, if one came (handled_signals).
        """
        with ExitStack() as files:
            if self._here.is_main_process:
                self._records = files.enter_context(recorded(self._output, self.done))
            advance = files.enter_context(track(self._description, self._plan.steps, "steps", done=self.done))
            number = 0
            pin = self._updates.device.type == "cuda"
            with fed(batches, range(self.done, self._plan.steps), workers=row_workers, pin=pin) as steps:
                for step, micro_batches, waited in steps:
                    self._step(step, micro_batches, waited)
                    advance(1, self._figures)
                    number = all_reduce_max(arrived() or 0)
                    if number:
                        break
                    if step % _RELEASE_EVERY == 0:
                        release()
            if number:
                if self._checkpoints and self.done > self._saved_step:
                    self._updates.check_finite(self._saved_step)
                    self._save()
                saved = f"{self._description}: step {self.done:,} is saved" if self._checkpoints and self.done else ""
                raise Interrupted(Signals(number), saved)

    def _step(self, step: int, micro_batches: Sequence[Batch], waited: float) -> None:
        """One update, then what is due: a line of metrics, an evaluation, a checkpoint, in this order.

        waited: seconds spent waiting for the micro-batches.
        """
        started = time.perf_counter()
        self.done = done = step + 1
        self._updates.update(step, micro_batches)

        log = done == 1 or self._due(self._plan.log_every)
        evaluated = self._evaluate is not None and self._due(self._plan.evaluate_every)
        kept = self._checkpoints
        late = kept is not None and self._here.is_main_process and kept.clock() - self._saved_at >= kept.every_seconds
        # The same in all processes, which check for finite values at the same steps; the clock of rank 0 counts.
        save = bool(all_reduce_max(int(kept is not None and (self._due(kept.every_steps) or late))))
        if log or evaluated or save:
            self._updates.check_finite(self._saved_step)  # waits for the device: the seconds are of finished work
        self._seconds += waited + time.perf_counter() - started
        self._waited += waited

        if log:
            self._log()
        if self._evaluate and evaluated:
            model, device = self._updates.model.eval(), self._updates.device
            with torch.no_grad(), autocast(device, self._plan.precision):
                self.heldout = dict(self._evaluate(model, done))
            self._records.write("heldout", done, {"pieces": self._updates.pieces, **self.heldout})
        if save:
            self._save()

    def _due(self, every: int) -> bool:
        return self.done == self._plan.steps or (every > 0 and self.done % every == 0)

    def _log(self) -> None:
        means, pieces = self._updates.means(), self._updates.take_pieces()
        values = {"pieces": self._updates.pieces, **means}
        self._records.train(self.done, values, self._seconds, self._waited, pieces)
        speed = f", {pieces / self._seconds:,.0f} pieces/s" if pieces else ""
        self._figures = f"loss {means['loss']:.4g}, rate {means['learning_rate']:.3g}{speed}"
        self._seconds = self._waited = 0.0

    def _save(self) -> None:
        assert self._checkpoints is not None
        if self._here.is_main_process:
            if self._records.metrics:
                self._records.metrics.sync()
            checkpoint = self._updates.checkpoint(self.done, self.heldout)
            storage.save(self._checkpoints.folder, checkpoint, self._checkpoints.keep)
        self._saved_step, self._saved_at = self.done, self._checkpoints.clock()
