"""Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): momentum whose singular values are all made about 1."""

from typing import Any

import torch
from torch import Tensor, nn

from korbert.training.settings import OptimizerSettings, PrecisionName

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic; "Muon", section "Coefficients"
_ITERATIONS = 5


def muon(groups: list[dict[str, Any]], settings: OptimizerSettings, precision: PrecisionName) -> torch.optim.Optimizer:
    """Muon for matrices, with steps of AdamW's size, so that one rate and decay serve both (Liu et al. 2025, 2.2).

    bf16 on a GPU or a processor with AMX: PyTorch's, which iterates in bf16. Else the same in float32: on a processor
    with the bf16 instructions of AVX-512 alone, bf16 takes 1.4 to 1.9 times as long, from 256 x 256 to 3,072 x 768.
    """
    device: torch.device = groups[0]["params"][0].device
    fast = device.type != "cpu" or torch.cpu._is_amx_tile_supported()
    kind = torch.optim.Muon if precision == "bf16" and fast else _Float32Muon
    return kind(groups, momentum=settings.momentum, adjust_lr_fn="match_rms_adamw")


def matrices_of_layers(model: nn.Module) -> set[str]:
    """Names of parameters for Muon: the weights of `Linear` inside a list of layers.

    Embeddings, position and type tables and anything outside the layers are excluded.
    """
    stacks = [(name, layers) for name, layers in model.named_modules() if isinstance(layers, nn.ModuleList)]
    parts = [(f"{stack}.{name}", part) for stack, layers in stacks for name, part in layers.named_modules()]
    return {f"{name}.weight" for name, part in parts if isinstance(part, nn.Linear)}


def orthogonalized(matrix: Tensor) -> Tensor:
    """The nearest matrix with orthonormal rows (or columns), roughly: singular values in (0.6, 1.3) for 1.

    Five steps of X <- aX + b(XX')X + c(XX')(XX')X in the matrix's own dtype, from X = matrix / its Frobenius norm.
    Singular values below a thousandth of that norm stay small.
    """
    a, b, c = _COEFFICIENTS
    tall = matrix.size(0) > matrix.size(1)
    wide = matrix.T if tall else matrix
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide.T if tall else wide


class _Float32Muon(torch.optim.Muon):
    """`torch.optim.Muon` with the iteration in float32. Groups and state are the same."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # closures are for line searches
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(parameter)
                momentum = state["momentum_buffer"].lerp_(parameter.grad, 1 - group["momentum"])
                update = orthogonalized(parameter.grad.lerp(momentum, group["momentum"]))  # Nesterov's
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update, alpha=-0.2 * max(parameter.shape) ** 0.5 * group["lr"])
