"""One update: gradients accumulated over micro-batches, clipped, applied; and the state of a checkpoint."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from korbert.errors import ArtifactError, ModelError
from korbert.messages import Message, join_messages
from korbert.seeds import derived_seed
from korbert.system import World, all_reduce, all_reduce_max
from korbert.training.checkpoints import Checkpoint
from korbert.training.devices import Batch, autocast, to_device
from korbert.training.distributed import add_over_world
from korbert.training.plan import OptimizerSettings, TrainingPlan

LossFunction = Callable[[nn.Module, Batch], Mapping[str, Tensor]]
"""Scalars by name, "loss" among them.

The value of an update is the sum over its micro-batches of value x batch["weight"]; without that key each micro-batch
weighs 1 / their number. With weights that are shares of what the loss averages over (rows, labels), accumulated
micro-batches give the same as one big batch.
"""


class Updates:
    """A model in training, with its optimizer and its sums of metrics: all that a checkpoint holds.

    pieces: in all updates so far, padding not counted, earlier runs included; 0 for batches that do not say.
    """

    def __init__(
        self, model: nn.Module, loss: LossFunction, plan: TrainingPlan, device: torch.device, here: World
    ) -> None:
        self.model = model
        self.device = device
        self._plan = plan
        self._here = here
        self._objective: nn.Module = _Objective(model, loss)
        if here.size > 1:  # averages gradients over the processes; each parameter has to get one in every update
            self._objective = DistributedDataParallel(
                self._objective, forward_sync_buffers=False, gradient_as_bucket_view=True
            )
        self._optimizer = Optimizer(model, plan.optimizer, plan.rate_factors)
        # Sums of metrics stay on the device, in float64, so that adding waits for nothing.
        self._sums: dict[str, Tensor] = {}
        self._summed_steps = 0
        self.pieces = 0
        self._bad_step = torch.full((), -1, dtype=torch.int64, device=device)

    def update(self, step: int, micro_batches: Sequence[Batch]) -> None:
        """Performs update `step` (0-based) on this process's micro-batches. Does not synchronize with the device."""
        plan = self._plan
        _seed_dropout(derived_seed(plan.seed, step, self._here.rank), self.device)
        self.model.train()

        # Gradients accumulate over this process's micro-batches; processes exchange them once, after the last one.
        counts, padding = self._counts(micro_batches)
        totals: dict[str, Tensor] = {}
        for number, batch in enumerate(micro_batches, 1):
            on_device = to_device({**batch, **counts}, self.device)
            ddp = self._objective if isinstance(self._objective, DistributedDataParallel) else None
            with ddp.no_sync() if ddp and number < len(micro_batches) else nullcontext():
                with autocast(self.device, plan.precision):
                    values = self._objective(on_device)
                weight = on_device.get("weight", 1 / (self._here.size * len(micro_batches)))
                weighted = {name: value * weight for name, value in values.items()}
                torch.autograd.backward(
                    weighted["loss"] * self._here.size
                )  # DistributedDataParallel averages over processes
            for name, value in weighted.items():
                totals[name] = totals[name] + value.detach() if name in totals else value.detach()
        summed = add_over_world(torch.stack([value.float() for value in totals.values()]), self._here)
        totals = dict(zip(totals, summed, strict=True))

        norm = nn.utils.clip_grad_norm_(self.model.parameters(), plan.optimizer.max_grad_norm)
        self._optimizer.step(plan.optimizer.rate_share(step, plan.steps))

        # Values stay on the device until they are read.
        for name, value in {**totals, "grad_norm": norm, **padding}.items():
            self._sums[name] = self._sums.get(name, 0.0) + value.detach().to(torch.float64)
        self._summed_steps += 1
        bad = (self._bad_step < 0) & ~torch.isfinite(totals["loss"] + norm)
        self._bad_step = torch.where(bad, step + 1, self._bad_step)

    def _counts(self, micro_batches: Sequence[Batch]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Adds to `pieces`. Returns the label counts that the loss divides by, summed over the processes (empty for one
        process), and the share of padding among the slots of attention (empty on a GPU).
        """
        local_sums = [sum(batch.get(name, 0) for batch in micro_batches) for name in ("pieces", "slots")]
        names = sorted(name for name in micro_batches[0] if name.endswith("_count"))  # one order in all processes
        pieces, slots, *sums = all_reduce([*local_sums, *(int(micro_batches[0][name]) for name in names)])
        self.pieces += pieces
        counts = dict(zip(names, map(torch.tensor, sums), strict=True)) if self._here.size > 1 else {}
        padding = {"padding": torch.tensor(1 - pieces / slots)} if slots and self.device.type == "cpu" else {}
        return counts, padding

    def check_finite(self, saved: int) -> None:
        """Raises ModelError for the first step whose loss or gradient was not finite. Waits for the device.

        saved: step of the last checkpoint; 0: there is none. All processes call this at the same step.
        """
        step = all_reduce_max(int(self._bad_step))
        if step < 0:
            return
        last_saved = Message("there is no checkpoint before it")
        if saved:
            last_saved = Message("the last good checkpoint is that of step {saved}", saved=saved)
        raise ModelError(
            "step {step}: the loss or its gradient is not a finite number; {kept}; lower learning_rate "
            "({learning_rate}) or raise warmup_share ({warmup_share})",
            step=step,
            kept=last_saved,
            learning_rate=self._plan.optimizer.learning_rate,
            warmup_share=self._plan.optimizer.warmup_share,
        )

    def means(self) -> dict[str, float]:
        """Means since the last call, in order of first appearance, with the last learning rate before the mean gradient
        norm (before clipping) and padding."""
        means = {name: value.item() / self._summed_steps for name, value in self._sums.items()}
        self._sums = {}
        self._summed_steps = 0
        after_rate: dict[str, float] = {name: means.pop(name) for name in ("grad_norm", "padding") if name in means}
        return {**means, "learning_rate": self._optimizer.rate, **after_rate}

    def checkpoint(self, done: int, heldout: Mapping[str, float]) -> Checkpoint:
        """The state after `done` updates. JSON keeps every bit of the float64 sums."""
        tensors = {f"model/{name}": tensor.detach() for name, tensor in _saved_tensors(self.model)}
        tensors |= {f"optimizer/{name}": tensor for name, tensor in self._optimizer.state().items()}
        sums = {name: value.item() for name, value in self._sums.items()}
        record = {
            "plan": self._plan.record(),
            "meter": {"steps": self._summed_steps, "sums": sums},
            "pieces": self.pieces,
            "heldout": dict(heldout),
        }
        return Checkpoint(done, tensors, record)

    def restore(self, checkpoint: Checkpoint) -> dict[str, float]:
        """Loads the state. Returns the held-out figures of the checkpoint. ArtifactError if it is of another run."""
        record = checkpoint.record
        states: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}}
        for full_name, tensor in checkpoint.tensors.items():
            kind, name = full_name.split("/", 1)
            states[kind][name] = tensor
        differences = [
            Message("{name}: {own} here, {saved} there", name=name, own=setting, saved=record["plan"].get(name))
            for name, setting in self._plan.record().items()
            if setting != record["plan"].get(name)
        ]
        tensors = dict(_saved_tensors(self.model))
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        if shapes != {name: tensor.shape for name, tensor in states["model"].items()}:
            differences.append(Message("a model with other tensors"))
        if differences:
            raise ArtifactError(
                "the checkpoint of step {step} is of another run ({differences}): remove the checkpoints to "
                "start anew, or go back to its settings",
                step=checkpoint.step,
                differences=join_messages(differences),
            )
        with torch.no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(states["model"][name])
        self._optimizer.restore(states["optimizer"])
        self._summed_steps = record["meter"]["steps"]
        self._sums = {
            name: torch.tensor(value, dtype=torch.float64, device=self.device)
            for name, value in record["meter"]["sums"].items()
        }
        self.pieces = record["pieces"]
        return dict(record["heldout"])


class Optimizer:
    """PyTorch's fused AdamW (Loshchilov and Hutter 2019, algorithm 2), on CPU six times as fast as the plain one.

    It trains all parameters that need a gradient. Matrices and embeddings decay, norms and biases do not, as in
    Google's BERT code. With kind "muon", PyTorch's Muon trains the matrices of the encoder's layers (Jordan et al.
    2024), with updates of the size of AdamW's (Liu et al. 2025, arXiv 2502.16982, 2.2), so that one rate suits both.

    rate_factors: parameter -> its rate as a multiple of `rate`, that of the others.
    """

    def __init__(self, model: nn.Module, settings: OptimizerSettings, rate_factors: Mapping[str, float]) -> None:
        self._model = model
        groups: dict[tuple[bool, float, bool], dict[str, Any]] = {}
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                continue
            peak = settings.learning_rate * rate_factors.get(name, 1.0)
            decay = settings.weight_decay if parameter.ndim >= 2 else 0.0
            by_muon = settings.kind == "muon" and parameter.ndim == 2 and name.startswith("encoder.layers.")
            empty_group = {"params": [], "lr": peak, "peak": peak, "weight_decay": decay}
            groups.setdefault((by_muon, peak, parameter.ndim >= 2), empty_group)["params"].append(parameter)
        adamw_groups, muon_groups = (
            [group for key, group in groups.items() if key[0] == side] for side in (False, True)
        )
        self._optimizers: list[torch.optim.Optimizer] = []
        if adamw_groups:
            betas = (settings.beta1, settings.beta2)
            self._optimizers.append(torch.optim.AdamW(adamw_groups, betas=betas, eps=settings.epsilon, fused=True))
        if muon_groups:
            self._optimizers.append(torch.optim.Muon(muon_groups, adjust_lr_fn="match_rms_adamw"))
        self._peak = self.rate = settings.learning_rate

    def step(self, share: float) -> None:
        """Applies the gradients at that share of the peak rates, and clears them."""
        self.rate = self._peak * share
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * share
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """All state tensors by `<parameter>/<key>`, for instance `encoder.final_norm.weight/exp_avg`."""
        from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict  # a second to import

        by_parameter: Any = get_optimizer_state_dict(self._model, self._optimizers)["state"]
        return {f"{name}/{key}": value for name, tensors in by_parameter.items() for key, value in tensors.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes over what `state` returned. The optimizers put the tensors on the device where they need them."""
        from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict

        current: Any = get_optimizer_state_dict(self._model, self._optimizers)
        for full_name, value in state.items():
            name, key = full_name.rsplit("/", 1)
            current["state"][name][key] = value
        set_optimizer_state_dict(self._model, self._optimizers, current)


class _Objective(nn.Module):
    """Model and loss as one module: DistributedDataParallel handles only the gradients of its own `forward`."""

    def __init__(self, model: nn.Module, loss: LossFunction) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(self, batch: Batch) -> Mapping[str, Tensor]:
        return self._loss(self.model, batch)


def _seed_dropout(seed: int, device: torch.device) -> None:
    """Seeds the generators of the CPU and of the device.

    torch.manual_seed would also seed every other kind of device. For one that is not in use it records the stack, which
    takes longer than a small update.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


def _saved_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters, tied ones once, and persistent buffers."""
    saved = model.state_dict().keys()
    yield from model.named_parameters()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in saved)
