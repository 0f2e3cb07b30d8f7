"""One update: gradients accumulated over micro-batches, clipped, applied; and the state that a checkpoint holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from korbert.errors import ArtifactError, ModelError
from korbert.seeds import derived_seed
from korbert.system import World, all_reduce, all_reduce_max
from korbert.training.checkpoints import Checkpoint
from korbert.training.devices import Batch, autocast, moved
from korbert.training.distributed import add_over_world, wrap
from korbert.training.optimizers import Optimizer
from korbert.training.plan import TrainingPlan
from korbert.training.schedules import rate_share

Loss = Callable[[nn.Module, Batch], Mapping[str, Tensor]]
"""Scalars by name, "loss" among them.

The value of an update is the sum over its micro-batches of value x batch["weight"]; without that key each micro-batch
weighs 1 / their number. With weights that are shares of what the loss averages over (rows, labels), accumulated
micro-batches give the same as one big batch.
"""

_MODEL, _OPTIMIZER = "model/", "optimizer/"  # prefixes of the tensors in a checkpoint


class Meter:
    """Means of metrics over `steps`. Sums stay on the device in float64, so that adding waits for nothing."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sums: dict[str, Tensor] = {}
        self.steps = 0

    def add(self, values: Mapping[str, Tensor]) -> None:
        """The scalars of one step."""
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value.detach().to(torch.float64)
        self.steps += 1

    def means(self) -> dict[str, float]:
        """The mean of each metric since the last call, in order of first appearance. Resets the sums."""
        means = {name: value.item() / self.steps for name, value in self._sums.items()}
        self._sums, self.steps = {}, 0
        return means

    def state(self) -> dict[str, Any]:
        """The sums, for a checkpoint. JSON keeps every bit of a float64."""
        return {"steps": self.steps, "sums": {name: value.item() for name, value in self._sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over what `state` returned."""
        self.steps = state["steps"]
        self._sums = {
            name: torch.tensor(value, dtype=torch.float64, device=self._device) for name, value in state["sums"].items()
        }


class Updates:
    """A model in training, with its optimizer and its sums of metrics: all that a checkpoint holds.

    pieces: in all updates so far, padding not counted, earlier runs included; 0 for batches that do not say.
    """

    def __init__(self, model: nn.Module, loss: Loss, plan: TrainingPlan, device: torch.device, here: World) -> None:
        self.model, self.device = model, device
        self._plan, self._here = plan, here
        self._objective = wrap(_Objective(model, loss), here)
        self._optimizer = Optimizer(model, plan.optimizer, plan.rate_factors)
        self._meter = Meter(device)
        self.pieces = self._pieces_taken = 0
        self._bad_step = torch.full((), -1, dtype=torch.int64, device=device)

    def update(self, step: int, micro_batches: Sequence[Batch]) -> None:
        """Performs update `step` (0-based) on this process's micro-batches. Does not synchronize with the device."""
        plan, size = self._plan, self._here.size
        self._optimizer.set_rate(rate_share(step, plan.steps, plan.optimizer))
        torch.manual_seed(derived_seed(plan.seed, step, self._here.rank))  # of dropout
        self.model.train()

        # Gradients accumulate over this process's micro-batches; processes exchange them once, after the last one.
        counts, padding = self._counts(micro_batches)
        totals: dict[str, Tensor] = {}
        for number, batch in enumerate(micro_batches, 1):
            on_device = moved({**batch, **counts}, self.device)
            ddp = self._objective if isinstance(self._objective, nn.parallel.DistributedDataParallel) else None
            with ddp.no_sync() if ddp and number < len(micro_batches) else nullcontext():
                with autocast(self.device, plan.precision):
                    values = self._objective(on_device)
                weight = on_device.get("weight", 1 / (size * len(micro_batches)))
                weighted = {name: value * weight for name, value in values.items()}
                torch.autograd.backward(weighted["loss"] * size)  # DistributedDataParallel averages over processes
            for name, value in weighted.items():
                totals[name] = totals[name] + value.detach() if name in totals else value.detach()
        summed = add_over_world(torch.stack([value.float() for value in totals.values()]), self._here)
        totals = dict(zip(totals, summed, strict=True))

        norm = nn.utils.clip_grad_norm_(self.model.parameters(), plan.optimizer.max_grad_norm)
        self._optimizer.step()

        # Values stay on the device until they are read.
        self._meter.add({**totals, "grad_norm": norm, **padding})
        bad = (self._bad_step < 0) & ~torch.isfinite(totals["loss"] + norm)
        self._bad_step = torch.where(bad, step + 1, self._bad_step)

    def _counts(self, micro_batches: Sequence[Batch]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """What the loss divides by, added up over the processes (each counted its own rows), and the share of slots
        that attention computes for padding, which on a GPU is none. Pieces are counted."""
        pieces, slots = (sum(batch.get(name, 0) for batch in micro_batches) for name in ("pieces", "slots"))
        names = sorted(name for name in micro_batches[0] if name.endswith("_count"))  # one order in all processes
        pieces, slots, *sums = all_reduce([pieces, slots, *(int(micro_batches[0][name]) for name in names)])
        self.pieces += pieces
        counts = dict(zip(names, map(torch.tensor, sums), strict=True)) if self._here.size > 1 else {}
        padding = {"padding": torch.tensor(1 - pieces / slots)} if slots and self.device.type == "cpu" else {}
        return counts, padding

    def check_finite(self, saved: int) -> None:
        """Raises ModelError for the first step whose loss or gradient was not finite. Waits for the device.

        saved: step of the last checkpoint; 0: there is none. All processes call this at the same step.
        """
        step = all_reduce_max(int(self._bad_step))
        if step >= 0:
            kept = f"the last good checkpoint is that of step {saved}" if saved else "there is no checkpoint before it"
            raise ModelError(
                "step {step}: the loss or its gradient is not a finite number; {kept}; lower learning_rate "
                "({learning_rate}) or raise warmup_share ({warmup_share})",
                step=step,
                kept=kept,
                learning_rate=self._plan.optimizer.learning_rate,
                warmup_share=self._plan.optimizer.warmup_share,
            )

    def means(self) -> dict[str, float]:
        """Means since the last call, by name; the last learning rate; the mean gradient norm before clipping."""
        means = self._meter.means()
        after_rate: dict[str, float] = {name: means.pop(name) for name in ("grad_norm", "padding") if name in means}
        return {**means, "learning_rate": self._optimizer.rate, **after_rate}

    def take_pieces(self) -> int:
        """Pieces since the last call, or since the run started or resumed."""
        before, self._pieces_taken = self._pieces_taken, self.pieces
        return self.pieces - before

    def checkpoint(self, done: int, heldout: Mapping[str, float]) -> Checkpoint:
        """The state after `done` updates."""
        tensors = {_MODEL + name: tensor.detach() for name, tensor in _saved_tensors(self.model)}
        tensors |= {_OPTIMIZER + name: tensor for name, tensor in self._optimizer.state().items()}
        record = {
            "plan": self._plan.record(),
            "meter": self._meter.state(),
            "pieces": self.pieces,
            "heldout": dict(heldout),
        }
        return Checkpoint(done, tensors, record)

    def restore(self, checkpoint: Checkpoint) -> dict[str, float]:
        """Loads the state. Returns the held-out figures of the checkpoint. ArtifactError if it is of another run."""
        record, own = checkpoint.record, dict(_saved_tensors(self.model))
        saved, of_optimizer = (
            {name.removeprefix(prefix): value for name, value in checkpoint.tensors.items() if name.startswith(prefix)}
            for prefix in (_MODEL, _OPTIMIZER)
        )
        plan, own_plan = record["plan"], self._plan.record().items()
        differences = [f"{name}: {own} here, {plan.get(name)} there" for name, own in own_plan if own != plan.get(name)]
        saved_shapes, own_shapes = ({name: value.shape for name, value in each.items()} for each in (saved, own))
        if saved_shapes != own_shapes:
            differences.append("a model with other tensors")
        if differences:
            raise ArtifactError(
                "the checkpoint of step {step} is of another run ({differences}): remove the checkpoints to "
                "start anew, or go back to its settings",
                step=checkpoint.step,
                differences="; ".join(differences),
            )
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(saved[name])
        self._optimizer.restore(of_optimizer)
        self._meter.restore(record["meter"])
        self.pieces = self._pieces_taken = record["pieces"]
        return dict(record["heldout"])


class _Objective(nn.Module):
    """Model and loss as one module: DistributedDataParallel handles only the gradients of its own `forward`."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(self, batch: Batch) -> Mapping[str, Tensor]:
        return self._loss(self.model, batch)


def _saved_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters, tied ones once, and persistent buffers."""
    saved = model.state_dict().keys()
    yield from model.named_parameters()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in saved)
