"""The one loop: all training of korbert goes through `fit`.

A step's batches are a pure function of its number, and its dropout of (seed, step). So nothing random has to be saved:
to resume is to load the last checkpoint and go on with the next step, and the outcome is the same bit for bit.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from korbert.interruption import Interrupted, noted_signals
from korbert.progress import track, untracked
from korbert.training import checkpoints as storage
from korbert.training.devices import Batch, autocast, choose_precision, memory_kept, pinned
from korbert.training.distributed import World, joined
from korbert.training.plan import Checkpointing, TrainingOutput, TrainingPlan
from korbert.training.records import Records, recorded
from korbert.training.updates import Loss, Updates

__all__ = ["Batch", "Batches", "Evaluate", "FitResult", "Loss", "fit"]

_GIVE_BACK_EVERY = 10  # steps; see memory_kept

Batches = Callable[[int], Sequence[Batch]]
Evaluate = Callable[[nn.Module, int], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class FitResult:
    """first_step: updates done by earlier runs (0 without a checkpoint). heldout: what `evaluate` gave last."""

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
) -> FitResult:
    """Trains `model` in place: `plan.steps` updates, or those after the newest whole checkpoint of `output`.

    batches: the micro-batches of update `step` (0-based), on the processor. Pure, and free of PyTorch's global
        generator: the next step's are made in a thread while this one runs.
    loss: scalars by name, "loss" among them. A step's value is the sum over its micro-batches of value x
        batch["weight"]; without that key each weighs 1 / number of micro-batches. So a mean whose weights are shares of
        what it counts (rows, labels) gives with accumulation what it gives in one big batch.
    evaluate: (model in evaluation mode, updates done) -> numbers; no gradients.

    Under torchrun each process takes every WORLD_SIZE-th micro-batch; their number must be a multiple of it.
    Raises ModelError when loss or gradient is not finite, ArtifactError when a checkpoint is of another run, and
    Interrupted after Ctrl-C or SIGTERM: the update under way is finished and saved before. A second signal ends it at
    once, and so does the first under torchrun, whose processes would have to end at the same step.
    """
    plan = replace(plan, precision=choose_precision(device, plan.precision))
    output = output or TrainingOutput()
    with ExitStack() as stack:
        here = stack.enter_context(joined(device))
        give_back = stack.enter_context(memory_kept(device))
        updates = Updates(model.to(device), loss, plan, device, here)
        found = storage.load_newest(output.checkpoints.folder) if output.checkpoints else None
        heldout = updates.restore(found) if found else {}
        first_step = found.step if found else 0
        run = _Run(updates, plan, here, output.checkpoints, evaluate, heldout, first_step)
        if here.writes:
            run.records = stack.enter_context(recorded(output, first_step))
        tracked = track(description, plan.steps, "steps", done=first_step) if here.writes else nullcontext(untracked)
        advance = stack.enter_context(tracked)
        ahead = _one_ahead(_pinned(batches) if device.type == "cuda" else batches, range(first_step, plan.steps))
        done = first_step
        with (
            noted_signals() if here.size == 1 else nullcontext(lambda: None) as arrived,
            ahead as steps_ahead,
        ):
            for step, micro_batches in steps_ahead:
                run.step(step, micro_batches)
                done = step + 1
                advance(1, run.figures)
                if arrived():
                    break
                if step % _GIVE_BACK_EVERY == 0:
                    give_back()
        if number := arrived():
            raise Interrupted(number, run.stop(done, description))
    model.eval()
    return FitResult(first_step=first_step, steps=plan.steps, heldout=run.heldout)


class _Run:
    """A run under way: updates, and what is due after each."""

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
        self._seconds = 0.0
        self._saved_step, self._saved_at = first_step, checkpoints.clock() if checkpoints else 0.0
        self.heldout = heldout
        self.figures = ""
        self.records = Records(None, None, None)

    def step(self, step: int, micro_batches: Sequence[Batch]) -> None:
        """One update, then whatever is due: a line, held-out figures, a checkpoint, in this order."""
        started = time.perf_counter()
        self._updates.update(step, micro_batches)
        done = step + 1
        log = done == 1 or self._due(done, self._plan.log_every)
        evaluate = self._evaluate is not None and self._due(done, self._plan.evaluate_every)
        save = self._checkpoints is not None and self._save_is_due(done, self._checkpoints)
        if log or evaluate or save:
            self._updates.refuse_bad_numbers()  # waits for the device: the seconds are those of finished work
        self._seconds += time.perf_counter() - started
        if log:
            means, pieces = self._updates.means(), self._updates.take_pieces()
            self.records.train(done, means, self._seconds, pieces)
            speed = f", {pieces / self._seconds:,.0f} pieces/s" if pieces else ""
            self.figures = f"loss {means['loss']:.4g}, rate {means['learning_rate']:.3g}{speed}"
            self._seconds = 0.0
        if evaluate and self._writes:
            self._hold_out(done)
        if save and self._writes and self._checkpoints:
            self._save(done, self._checkpoints)

    def stop(self, done: int, description: str) -> str:
        """Saves the state after `done` updates, unless it is; says so, or nothing where there is none to save."""
        if self._checkpoints is None or not done:
            return ""
        if done > self._saved_step:
            self._updates.refuse_bad_numbers()
            self._save(done, self._checkpoints)
        return f"{description}: step {done:,} is saved"

    def _due(self, done: int, every: int) -> bool:
        return done == self._plan.steps or (every > 0 and done % every == 0)

    def _save_is_due(self, done: int, checkpoints: Checkpointing) -> bool:
        late = self._writes and checkpoints.clock() - self._saved_at >= checkpoints.every_seconds
        return late or self._due(done, checkpoints.every_steps)

    def _hold_out(self, done: int) -> None:
        assert self._evaluate is not None
        model = self._updates.model.eval()
        with torch.no_grad(), autocast(self._updates.device, self._plan.precision):
            self.heldout = dict(self._evaluate(model, done))
        self.records.heldout(done, self.heldout)

    def _save(self, done: int, checkpoints: Checkpointing) -> None:
        self.records.sync()
        storage.save(checkpoints.folder, self._updates.checkpoint(done, self.heldout), checkpoints.keep)
        self._saved_step, self._saved_at = done, checkpoints.clock()


def _pinned(batches: Batches) -> Batches:
    return lambda step: [pinned(batch) for batch in batches(step)]


@contextmanager
def _one_ahead(batches: Batches, steps: range) -> Iterator[Iterator[tuple[int, Sequence[Batch]]]]:
    """(step, its micro-batches), each made in a thread while the one before is in use."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as thread:

        def walk() -> Iterator[tuple[int, Sequence[Batch]]]:
            following = thread.submit(batches, steps[0]) if steps else None
            for step in steps:
                assert following is not None
                current = following.result()
                following = thread.submit(batches, step + 1) if step + 1 in steps else None
                yield step, current

        yield walk()
