"""The training loop, `fit`, for pretraining and all tasks.

The batches of a step are a pure function of its number, and dropout is one of (seed, step), so a checkpoint holds no
random state. A resumed run loads the newest checkpoint, continues with the next step, and ends in the same bits.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import Signals

import torch
from torch import nn

from korbert.interruption import Interrupted, noted_signals
from korbert.progress import track
from korbert.training import checkpoints as storage
from korbert.training.devices import Batch, autocast, choose_precision, memory_kept
from korbert.training.distributed import World, joined
from korbert.training.feeding import fed
from korbert.training.plan import Checkpointing, TrainingOutput, TrainingPlan
from korbert.training.records import Records, recorded
from korbert.training.sharding import is_sharded
from korbert.training.updates import Loss, Updates
from korbert.world import from_first, greatest

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
    sharded: bool = False,
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

    sharded: several processes have a part of the weights each (korbert/training/sharding.py). `model` then stays where
        it is, and gets the weights at the end. `loss` and `evaluate` call each layer equally often in all processes.

    Under torchrun `batches` gives this process's part of the step (korbert.world.connected): at least one micro-batch,
    weights as shares of the whole step. Keys that end in `_count` are numbers of the part, which are added up before
    the loss sees them. `evaluate` runs in all processes; rank 0 writes, and the others read its checkpoints.
    Raises ModelError when a loss or gradient is not finite, ArtifactError when a checkpoint is of another run, and
    Interrupted after Ctrl-C or SIGTERM, when the current update is finished and saved: the same one in all processes.
    A second signal ends the run at once.
    """
    plan = replace(plan, precision=choose_precision(device, plan.precision))
    output = output or TrainingOutput()
    with ExitStack() as stack:
        here = stack.enter_context(joined(device))
        release = stack.enter_context(memory_kept(device))

        # The state of the newest checkpoint, if there is one.
        spread = sharded and here.size > 1
        trained = (copy.deepcopy(model) if spread else model).to(device)
        updates = Updates(trained, loss, plan, device, here, spread=spread)
        checkpoint = _newest(output.checkpoints.folder, here) if output.checkpoints else None
        heldout = updates.restore(checkpoint) if checkpoint else {}
        first_step = checkpoint.step if checkpoint else 0
        run = _Run(updates, plan, here, output.checkpoints, evaluate, heldout, first_step)

        # One process writes files and shows progress.
        if here.writes:
            run.records = stack.enter_context(recorded(output, first_step))
        advance = stack.enter_context(track(description, plan.steps, "steps", done=first_step))

        done, number = first_step, 0
        with (
            noted_signals() as arrived,
            fed(batches, range(first_step, plan.steps), workers=row_workers, pin=device.type == "cuda") as steps,
        ):
            for step, micro_batches, waited in steps:
                run.step(step, micro_batches, waited)
                done = step + 1
                advance(1, run.figures)
                if number := greatest(arrived() or 0):
                    break
                if step % _RELEASE_EVERY == 0:
                    release()
        if number:
            raise Interrupted(Signals(number), run.stop(done, description))
        updates.finish()
        if spread:
            updates.give(model)
    model.eval()
    return FitResult(first_step=first_step, steps=plan.steps, heldout=run.heldout)


def _newest(folder: Path, here: World) -> storage.Checkpoint | None:
    """The newest whole checkpoint: rank 0 finds it, and the others read that one."""
    own = storage.load_newest(folder) if here.writes else None
    step = from_first(lambda: own.step if own else None)
    return own if here.writes or step is None else storage.load(folder, step)


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
        self._gathers = is_sharded(updates.model)  # all processes take part in a checkpoint
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
        if self._gathers:
            save = bool(greatest(int(save)))
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
        if evaluate and self._evaluate:
            model, device = self._updates.model.eval(), self._updates.device
            with torch.no_grad(), self._updates.evaluating(), autocast(device, self._plan.precision):
                self.heldout = dict(self._evaluate(model, done))
            self.records.heldout(done, {"pieces": self._updates.pieces, **self.heldout})
        if save:
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
        if self._writes or self._gathers:
            checkpoint = self._updates.checkpoint(done, self.heldout)
        if self._writes:
            self.records.sync()
            storage.save(self._checkpoints.folder, checkpoint, self._checkpoints.keep)
        self._saved_step, self._saved_at = done, self._checkpoints.clock()
