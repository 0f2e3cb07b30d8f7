"""LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2)."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from korbert.training.settings import OptimizerSettings, PrecisionName

__all__ = ["lamb"]


def lamb(
    groups: Iterable[dict[str, Any]], settings: OptimizerSettings, precision: PrecisionName
) -> torch.optim.Optimizer:
    """LAMB in float32. Vectors (norms, biases) are updated as by AdamW."""
    return _Lamb(groups, {"beta1": settings.beta1, "beta2": settings.beta2, "epsilon": settings.epsilon})


class _Lamb(torch.optim.Optimizer):
    """A step of Adam and decay, as long as the matrix itself times the rate: x - rate x |x| / |u| x u.

    u = m / (sqrt(v) + epsilon) + weight_decay x x, with Adam's moments m and v, corrected for their start at 0. The
    ratio |x| / |u| is 1 for vectors, and where x or u is 0. The paper's bounds of |x| are left out.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # closures are for line searches
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)  # on CPU: reading it does not synchronize
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        first, second, step = state["exp_avg"], state["exp_avg_sq"], state["step"].item()
        first.lerp_(gradient, 1 - group["beta1"])
        second.mul_(group["beta2"]).addcmul_(gradient, gradient, value=1 - group["beta2"])

        # Few passes over memory, which dominate the time of a step with 100,000 entries.
        correct1, correct2 = 1 - group["beta1"] ** step, 1 - group["beta2"] ** step
        root = second.sqrt().mul_(correct1 / correct2**0.5).add_(correct1 * group["epsilon"])
        update = torch.div(first, root, out=root)
        if group["weight_decay"]:
            update.add_(parameter, alpha=group["weight_decay"])
        if parameter.ndim < 2:
            parameter.add_(update, alpha=-group["lr"])
            return
        length, update_length = parameter.norm(), update.norm()
        ratio = torch.where((length > 0) & (update_length > 0), length / update_length, 1.0)
        parameter.addcmul_(update, ratio, value=-group["lr"])
