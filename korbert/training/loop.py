"""The training loop, `fit`, for pretraining and all tasks.

The batches of a step are a pure function of its number, and dropout is one of (seed, step), so a checkpoint holds no
random state. A resumed run loads the newest checkpoint, continues with the next step, and ends in the same bits.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from korbert.interruption import Interrupted, noted_signals
from korbert.progress import track, untracked
from korbert.training import checkpoints as storage
from korbert.training.devices import Batch, autocast, choose_precision, memory_kept
from korbert.training.distributed import World, joined
from korbert.training.feeding import fed
from korbert.training.plan import Checkpointing, TrainingOutput, TrainingPlan
from korbert.training.records import Records, recorded
from korbert.training.updates import Loss, Updates

__all__ = ["Batch", "Batches", "Evaluate", "FitResult", "Loss", "fit"]

_RELEASE_EVERY = 10  # steps; see memory_kept

Batches = Callable[[int], Sequence[Batch]]
Evaluate = Callable[[nn.Module, int], Mapping[str, float]]


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

    With `plan.optimizer.average` the model is evaluated with averaged weights, and ends with them.

    batches: update (0-based) -> its micro-batches, on the processor. Pure, and free of PyTorch's global generator: a
        thread makes those of the next update while this one runs, or `row_workers` processes those of the next ones,
        for which it has to be something that can be pickled. The trained bytes do not depend on their number.
    loss: scalars by name, "loss" among them. The value of an update is the sum over its micro-batches of value x
        batch["weight"]; without that key each micro-batch weighs 1 / their number. With weights that are shares of what
        the loss averages over (rows, labels), accumulated micro-batches give the same as one big batch.
    evaluate: (model in evaluation mode, updates done) -> numbers; runs without gradients.

    Under torchrun each process takes every WORLD_SIZE-th micro-batch; their number must be a multiple of WORLD_SIZE.
    Raises ModelError when a loss or gradient is not finite, ArtifactError when a checkpoint is of another run, and
    Interrupted after Ctrl-C or SIGTERM, when the current update is finished and saved. A second signal ends the run at
    once; so does the first under torchrun, whose processes would all have to stop at the same update.
    """
    plan = replace(plan, precision=choose_precision(device, plan.precision))
    output = output or TrainingOutput()
    with ExitStack() as stack:
        here = stack.enter_context(joined(device))
        release = stack.enter_context(memory_kept(device))

        # The state of the newest checkpoint, if there is one.
        updates = Updates(model.to(device), loss, plan, device, here)
        checkpoint = storage.load_newest(output.checkpoints.folder) if output.checkpoints else None
        heldout = updates.restore(checkpoint) if checkpoint else {}
        first_step = checkpoint.step if checkpoint else 0
        run = _Run(updates, plan, here, output.checkpoints, evaluate, heldout, first_step)

        # One process writes files and shows progress.
        if here.writes:
            run.records = stack.enter_context(recorded(output, first_step))
        shown = track(description, plan.steps, "steps", done=first_step) if here.writes else nullcontext(untracked)
        advance = stack.enter_context(shown)

        done = first_step
        with (
            noted_signals() if here.size == 1 else nullcontext(lambda: None) as arrived,
            fed(batches, range(first_step, plan.steps), workers=row_workers, pin=device.type == "cuda") as steps,
        ):
            for step, micro_batches, waited in steps:
                run.step(step, micro_batches, waited)
                done = step + 1
                advance(1, run.figures)
                if arrived():
                    break
                if step % _RELEASE_EVERY == 0:
                    release()
        if number := arrived():
            raise Interrupted(number, run.stop(done, description))
    updates.finish()
    model.eval()
    return FitResult(first_step=first_step, steps=plan.steps, heldout=run.heldout)


class _Run:
    """A run in progress: its updates, and what is due after each."""

    def __init__(
        self,
        updates: Updates,
        plan: TrainingPlan,
        here: World,
        checkpoints: Checkpointing | None,
        evaluate: Evaluate | None,
        heldout: Mapping[str, float],
        first_step: int,
    ) -> None:
        self._updates, self._plan, self._writes = updates, plan, here.writes
        self._checkpoints, self._evaluate = checkpoints, evaluate
        self._seconds = self._waited = 0.0
        self._saved_step, self._saved_at = first_step, checkpoints.clock() if checkpoints else 0.0
        self.heldout = heldout
        self.figures = ""
        self.records = Records(None, None, None)

    def step(self, step: int, micro_batches: Sequence[Batch], waited: float) -> None:
        """One update, then what is due: a line of metrics, an evaluation, a checkpoint, in this order.

        waited: seconds that it took to get the micro-batches.
        """
        started = time.perf_counter()
        self._updates.update(step, micro_batches)

        done, checkpoints = step + 1, self._checkpoints
        log = done == 1 or self._due(done, self._plan.log_every)
        evaluate = self._evaluate is not None and self._due(done, self._plan.evaluate_every)
        save = checkpoints is not None and (
            self._due(done, checkpoints.every_steps)
            or (self._writes and checkpoints.clock() - self._saved_at >= checkpoints.every_seconds)
        )
        if log or evaluate or save:
            self._updates.check_finite()  # waits for the device: the seconds are those of finished work
        self._seconds += waited + time.perf_counter() - started
        self._waited += waited

        if log:
            means, pieces = self._updates.means(), self._updates.take_pieces()
            values = {"pieces": self._updates.pieces, **means}
            self.records.train(done, values, self._seconds, self._waited, pieces)
            speed = f", {pieces / self._seconds:,.0f} pieces/s" if pieces else ""
            self.figures = f"loss {means['loss']:.4g}, rate {means['learning_rate']:.3g}{speed}"
            self._seconds = self._waited = 0.0
        if evaluate and self._writes and self._evaluate:
            model = self._updates.model.eval()
            with torch.no_grad(), self._updates.averaged(), autocast(self._updates.device, self._plan.precision):
                self.heldout = dict(self._evaluate(model, done))
            self.records.heldout(done, {"pieces": self._updates.pieces, **self.heldout})
        if save and self._writes:
            self._save(done)

    def stop(self, done: int, description: str) -> str:
        """Saves the state after `done` updates, if it is not saved yet. Returns what to say of it, "" if nothing is."""
        if self._checkpoints is None or not done:
            return ""
        if done > self._saved_step:
            self._updates.check_finite()
            self._save(done)
        return f"{description}: step {done:,} is saved"

    def _due(self, done: int, every: int) -> bool:
        return done == self._plan.steps or (every > 0 and done % every == 0)

    def _save(self, done: int) -> None:
        assert self._checkpoints is not None
        self.records.sync()
        checkpoint = self._updates.checkpoint(done, self.heldout)
        storage.save(self._checkpoints.folder, checkpoint, self._checkpoints.keep)
        self._saved_step, self._saved_at = done, self._checkpoints.clock()
