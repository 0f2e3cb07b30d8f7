"""One update: gradients accumulated over micro-batches, clipped, applied; and the state that a checkpoint holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from korbert.errors import ArtifactError, ModelError
from korbert.seeds import derived_seed
from korbert.training import sharding
from korbert.training.checkpoints import Checkpoint
from korbert.training.devices import Batch, autocast, moved
from korbert.training.distributed import World, add_over_world, wrap
from korbert.training.meters import Meter
from korbert.training.optimizers import adamw, optimizer_state, restore_optimizer
from korbert.training.plan import TrainingPlan
from korbert.world import agreed

__all__ = ["Loss", "Updates"]

Loss = Callable[[nn.Module, Batch], Mapping[str, Tensor]]

_MODEL, _OPTIMIZER = "model/", "optimizer/"  # prefixes of the tensors in a checkpoint


class Updates:
    """A model in training, with its optimizer and its sums of metrics: all that a checkpoint holds."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        plan: TrainingPlan,
        device: torch.device,
        here: World,
        *,
        spread: bool = False,
    ) -> None:
        """spread: over the processes (korbert.training.sharding); otherwise each has all of the model."""
        self.model, self.device = model, device
        self._plan, self._here = plan, here
        self._objective: nn.Module = _Objective(model, loss)
        if spread:
            sharding.shard(self._objective, device)
        else:
            self._objective = wrap(self._objective, here)
        self._optimizer = adamw(model, plan.optimizer)
        self._meter = Meter(device)
        self._rate = 0.0
        self._pieces = 0
        self._bad_step = torch.full((), -1, dtype=torch.int64, device=device)

    def update(self, step: int, micro_batches: Sequence[Batch]) -> None:
        """Update `step` (0-based), with this process's micro-batches. Waits for nothing on the device."""
        size = self._here.size
        self._rate = self._plan.learning_rate(step)
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate
        torch.manual_seed(derived_seed(self._plan.seed, step, self._here.rank))  # of dropout
        self.model.train()

        # Gradients add up over this process's micro-batches; processes exchange them once, behind the last one.
        counts = self._counts(micro_batches)
        totals: dict[str, Tensor] = {}
        for number, batch in enumerate(micro_batches, 1):
            there = moved({**batch, **counts}, self.device)
            ddp = self._objective if isinstance(self._objective, nn.parallel.DistributedDataParallel) else None
            with ddp.no_sync() if ddp and number < len(micro_batches) else nullcontext():
                with autocast(self.device, self._plan.precision):
                    values = self._objective(there)
                weight = there.get("weight", 1 / (size * len(micro_batches)))
                weighted = {name: value * weight for name, value in values.items()}
                torch.autograd.backward(weighted["loss"] * size)  # DistributedDataParallel averages over processes
            for name, value in weighted.items():
                totals[name] = totals[name] + value.detach() if name in totals else value.detach()
        summed = add_over_world(torch.stack([value.float() for value in totals.values()]), self._here)
        totals = dict(zip(totals, summed, strict=True))

        norm = sharding.whole(nn.utils.clip_grad_norm_(self.model.parameters(), self._plan.optimizer.max_grad_norm))
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

        # Numbers stay on the device until somebody asks for them.
        self._meter.add({**totals, "grad_norm": norm})
        bad = (self._bad_step < 0) & ~torch.isfinite(totals["loss"] + norm)
        self._bad_step = torch.where(bad, step + 1, self._bad_step)

    def _counts(self, micro_batches: Sequence[Batch]) -> dict[str, Tensor]:
        """Pieces are counted; what the loss divides by is added up over the processes: each counted its own rows."""
        pieces = sum(int(batch["attention_mask"].sum()) for batch in micro_batches if "attention_mask" in batch)
        names = [name for name in micro_batches[0] if name.endswith("_count")]
        pieces, *sums = agreed([pieces, *(int(micro_batches[0][name]) for name in names)])
        self._pieces += pieces
        return dict(zip(names, map(torch.tensor, sums), strict=True)) if self._here.size > 1 else {}

    def check_finite(self) -> None:
        """Raises ModelError naming the first step whose loss or gradient was not finite. Waits for the device."""
        step = int(self._bad_step)
        if step >= 0:
            raise ModelError(
                f"step {step}: the loss or its gradient is not a finite number; lower learning_rate "
                f"({self._plan.optimizer.learning_rate}) or raise warmup_share ({self._plan.optimizer.warmup_share})"
            )

    def means(self) -> dict[str, float]:
        """Means since the last call, by name; the last learning rate; the mean gradient norm before clipping."""
        means = self._meter.means()
        norm = means.pop("grad_norm")
        return {**means, "learning_rate": self._rate, "grad_norm": norm}

    def take_pieces(self) -> int:
        """Pieces since the last call, padding not counted; 0 for batches without attention_mask."""
        pieces, self._pieces = self._pieces, 0
        return pieces

    def checkpoint(self, done: int, heldout: Mapping[str, float]) -> Checkpoint:
        """The state after `done` updates. Of a sharded model all processes call this, and only rank 0 gets tensors."""
        tensors = {_MODEL + name: tensor.detach() for name, tensor in _saved_tensors(self.model)}
        for name, tensor in optimizer_state(self.model, self._optimizer).items():
            tensors[_OPTIMIZER + name] = tensor
        if sharding.is_sharded(self._objective):
            gathered = ((name, sharding.whole(tensor)) for name, tensor in tensors.items())
            tensors = {name: tensor.cpu() for name, tensor in gathered if self._here.writes}
        record = {"plan": self._plan.record(), "meter": self._meter.state(), "heldout": dict(heldout)}
        return Checkpoint(done, tensors, record)

    def restore(self, checkpoint: Checkpoint) -> dict[str, float]:
        """Loads the state. Returns the held-out figures of the checkpoint. ArtifactError if it is of another run."""
        targets = {_MODEL + name: tensor for name, tensor in _saved_tensors(self.model)}
        there, here = checkpoint.record["plan"], self._plan.record()
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
        with torch.no_grad():
            for name, target in targets.items():
                target.copy_(sharding.like(checkpoint.tensors[name], target))
        state = {
            name.removeprefix(_OPTIMIZER): sharding.like(
                value, targets[_MODEL + name[len(_OPTIMIZER) :].rpartition("/")[0]]
            )
            for name, value in checkpoint.tensors.items()
            if name.startswith(_OPTIMIZER)
        }
        restore_optimizer(self.model, self._optimizer, state)
        self._meter.restore(checkpoint.record["meter"])
        return dict(checkpoint.record["heldout"])

    def evaluating(self) -> AbstractContextManager[None]:
        """Inside, the model can be called without its loss."""
        return sharding.whole_outside_layers(self._objective)

    def give(self, model: nn.Module) -> None:
        """Copies the trained weights into a model that is whole."""
        own = dict(_saved_tensors(self.model))
        with torch.no_grad():
            for name, target in _saved_tensors(model):
                target.copy_(sharding.whole(own[name]))


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
