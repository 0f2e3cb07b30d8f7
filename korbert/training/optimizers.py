"""AdamW, and its state by parameter name."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from korbert.training.settings import OptimizerSettings

__all__ = ["adamw", "optimizer_state", "restore_optimizer"]


def adamw(model: nn.Module, settings: OptimizerSettings) -> torch.optim.AdamW:
    """Fused AdamW. Matrices and embeddings decay, norms and biases do not, as in Google's BERT code."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=True,
    )


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """All state tensors by `<parameter>/<key>`, for instance `encoder.norm.weight/exp_avg`."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Tensor]) -> None:
    """Takes over what `optimizer_state` returned. Tensors are moved to the device of their parameter."""
    parameters = dict(model.named_parameters())
    for full_name, value in state.items():
        name, key = full_name.rsplit("/", 1)
        optimizer.state[parameters[name]][key] = value.to(parameters[name].device)
