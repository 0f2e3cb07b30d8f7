"""Table of available optimizers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from korbert.training.optimizers.muon import matrices_of_layers, muon
from korbert.training.settings import OptimizerKind, OptimizerSettings, PrecisionName

__all__ = ["OPTIMIZERS", "Optimizer"]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """build: (groups with "params", "lr" and "weight_decay"; settings; fp32 or bf16) -> what makes the steps.

    made_for: model -> names of the parameters that it can train; None: all. AdamW trains the others.
    """

    build: Callable[[Iterable[dict[str, Any]], OptimizerSettings, PrecisionName], torch.optim.Optimizer]
    made_for: Callable[[nn.Module], set[str]] | None = None


def adamw(
    groups: Iterable[dict[str, Any]], settings: OptimizerSettings, precision: PrecisionName
) -> torch.optim.Optimizer:
    """PyTorch's fused AdamW (Loshchilov and Hutter 2019, algorithm 2), six times as fast as the plain one on CPU. State
    and update are in float32."""
    betas = (settings.beta1, settings.beta2)
    return torch.optim.AdamW(groups, betas=betas, eps=settings.epsilon, fused=True)


OPTIMIZERS: Mapping[OptimizerKind, Optimizer] = {"adamw": Optimizer(adamw), "muon": Optimizer(muon, matrices_of_layers)}
