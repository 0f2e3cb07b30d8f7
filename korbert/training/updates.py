"""Updates: gradients of micro-batches, clipped, into the parameters; and the state from which the next one goes on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from korbert.errors import ArtifactError, ModelError
from korbert.seeds import derived_seed
from korbert.training.checkpoints import Checkpoint
from korbert.training.devices import Batch, autocast, moved
from korbert.training.distributed import World, add_over_world, wrap
from korbert.training.meters import Meter
from korbert.training.optimizers import adamw, optimizer_state, restore_optimizer
from korbert.training.plan import TrainingPlan

__all__ = ["Loss", "Updates"]

Loss = Callable[[nn.Module, Batch], Mapping[str, Tensor]]

_MODEL, _OPTIMIZER = "model/", "optimizer/"  # what a checkpoint's tensors begin with


class Updates:
    """A model under training, with its optimizer and its meters: all that a checkpoint holds."""

    def __init__(self, model: nn.Module, loss: Loss, plan: TrainingPlan, device: torch.device, here: World) -> None:
        self.model, self.device = model, device
        self._plan, self._here = plan, here
        self._objective = wrap(_Objective(model, loss), here)
        self._optimizer = adamw(model, plan.optimizer)
        self._meter = Meter(device)
        self._rate = 0.0
        self._pieces = 0
        self._bad_step = torch.full((), -1, dtype=torch.int64, device=device)

    def update(self, step: int, micro_batches: Sequence[Batch]) -> None:
        """Update `step` (0-based). Waits for nothing on the device."""
        self._rate = self._plan.learning_rate(step)
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate
        torch.manual_seed(derived_seed(self._plan.seed, step, self._here.rank))
        self.model.train()
        values = self._gradients(micro_batches)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self._plan.optimizer.max_grad_norm)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._meter.add({**values, "grad_norm": norm})
        bad = (self._bad_step < 0) & ~torch.isfinite(values["loss"] + norm)
        self._bad_step = torch.where(bad, step + 1, self._bad_step)

    def _gradients(self, micro_batches: Sequence[Batch]) -> dict[str, Tensor]:
        """Adds up the gradients of this process's micro-batches. The values of the whole step, by name."""
        if len(micro_batches) % self._here.size:
            raise ModelError(
                f"{len(micro_batches)} micro-batches a step cannot be shared evenly by {self._here.size} processes: "
                f"take a multiple of {self._here.size}"
            )
        mine = micro_batches[self._here.rank :: self._here.size]
        totals: dict[str, Tensor] = {}
        for index, batch in enumerate(mine):
            self._pieces += _num_pieces(batch) * self._here.size
            with self._exchanging(last=index == len(mine) - 1):
                weighed = self._weighed(moved(batch, self.device), 1 / len(micro_batches))
                # the processes' gradients are averaged, not added
                torch.autograd.backward(weighed["loss"] * self._here.size)
            for name, value in weighed.items():
                totals[name] = totals[name] + value.detach() if name in totals else value.detach()
        return {name: add_over_world(value, self._here) for name, value in totals.items()}

    def _weighed(self, batch: Batch, weight: float) -> dict[str, Tensor]:
        with autocast(self.device, self._plan.precision):
            values = self._objective(batch)
        return {name: value * batch.get("weight", weight) for name, value in values.items()}

    def _exchanging(self, last: bool) -> AbstractContextManager[None]:
        """Processes exchange gradients once a step, behind the last micro-batch."""
        if last or not isinstance(self._objective, nn.parallel.DistributedDataParallel):
            return nullcontext()
        return self._objective.no_sync()

    def refuse_bad_numbers(self) -> None:
        """Raises ModelError naming the first step whose loss or gradient was not finite. Waits for the device."""
        step = int(self._bad_step)
        if step >= 0:
            raise ModelError(
                f"step {step}: the loss or its gradient is not a finite number; lower learning_rate "
                f"({self._plan.optimizer.learning_rate}) or raise warmup_share ({self._plan.optimizer.warmup_share})"
            )

    def means(self) -> dict[str, float]:
        """Means since the last call, by name; the last rate; the mean length of the gradient before clipping."""
        means = self._meter.means()
        norm = means.pop("grad_norm")
        return {**means, "learning_rate": self._rate, "grad_norm": norm}

    def take_pieces(self) -> int:
        """Pieces seen since the last call."""
        pieces, self._pieces = self._pieces, 0
        return pieces

    def checkpoint(self, done: int, heldout: Mapping[str, float]) -> Checkpoint:
        """The state after `done` updates."""
        tensors = {_MODEL + name: tensor.detach() for name, tensor in _saved_tensors(self.model)}
        for name, tensor in optimizer_state(self.model, self._optimizer).items():
            tensors[_OPTIMIZER + name] = tensor
        record = {"plan": self._plan.record(), "meter": self._meter.state(), "heldout": dict(heldout)}
        return Checkpoint(done, tensors, record)

    def restore(self, checkpoint: Checkpoint) -> dict[str, float]:
        """Takes the state over; the held-out figures that lay with it. ArtifactError if it is of another run."""
        targets = {_MODEL + name: tensor for name, tensor in _saved_tensors(self.model)}
        _refuse_other_run(checkpoint, self._plan, targets)
        with torch.no_grad():
            for name, target in targets.items():
                target.copy_(checkpoint.tensors[name])
        state = {name: value for name, value in checkpoint.tensors.items() if name.startswith(_OPTIMIZER)}
        restore_optimizer(self.model, self._optimizer, {name[len(_OPTIMIZER) :]: state[name] for name in state})
        self._meter.restore(checkpoint.record["meter"])
        return dict(checkpoint.record["heldout"])


class _Objective(nn.Module):
    """Model and loss as one module: DistributedDataParallel sees gradients only behind a `forward`."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(self, batch: Batch) -> Mapping[str, Tensor]:
        return self._loss(self.model, batch)


def _saved_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters, shared ones once, and the buffers that are part of the model's state."""
    saved = model.state_dict().keys()
    yield from model.named_parameters()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in saved)


def _refuse_other_run(checkpoint: Checkpoint, plan: TrainingPlan, targets: Mapping[str, Tensor]) -> None:
    there, here = checkpoint.record["plan"], plan.record()
    differences = [
        f"{name}: {here[name]} here, {there.get(name)} there" for name in here if here[name] != there.get(name)
    ]
    shapes = {name: tuple(tensor.shape) for name, tensor in checkpoint.tensors.items() if name.startswith(_MODEL)}
    if shapes != {name: tuple(target.shape) for name, target in targets.items()}:
        differences.append("a model with other tensors")
    if differences:
        raise ArtifactError(
            f"the checkpoint of step {checkpoint.step} is of another run ({'; '.join(differences)}): "
            "remove the checkpoints to start anew, or go back to its settings"
        )


def _num_pieces(batch: Batch) -> int:
    """Pieces in a batch, padding not counted; 0 where it has no attention_mask."""
    return int(batch["attention_mask"].sum()) if "attention_mask" in batch else 0
