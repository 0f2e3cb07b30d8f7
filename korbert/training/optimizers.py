"""The optimizers of a run as one: the groups of its parameters, their rates, and their state by parameter name.

A new kind is an entry of OPTIMIZERS, a name in settings.py, a file like muon.py, and its tests.
"""

import difflib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from korbert.errors import SettingsError
from korbert.training.muon import matrices_of_layers, muon
from korbert.training.settings import OptimizerKind, OptimizerSettings, ParameterGroup, PrecisionName

Groups = list[dict[str, Any]]
"""Groups of a `torch.optim.Optimizer`, with "params", "lr" and "weight_decay"."""


def adamw(groups: Groups, settings: OptimizerSettings, precision: PrecisionName) -> torch.optim.Optimizer:
    """PyTorch's fused AdamW (Loshchilov and Hutter 2019, algorithm 2), on CPU six times as fast as the plain one."""
    betas = (settings.beta1, settings.beta2)
    return torch.optim.AdamW(groups, betas=betas, eps=settings.epsilon, fused=True)


OPTIMIZERS: dict[OptimizerKind, Callable[[Groups, OptimizerSettings, PrecisionName], torch.optim.Optimizer]] = {
    "adamw": adamw,
    "muon": muon,
}


def parameter_groups(model: nn.Module, settings: OptimizerSettings) -> dict[OptimizerKind, Groups]:
    """The groups of each kind, over all parameters that need a gradient.

    The first group of the settings whose pattern matches a parameter's name holds for it. Matrices and embeddings
    decay, norms and biases do not, as in Google's BERT code. AdamW trains what Muon cannot. "peak" is the rate at the
    end of warmup, "pattern" that of the group of the settings, None for parameters without one.

    Raises SettingsError for a pattern that matches no parameter, or for Muon if it can train none of those it matches.
    """
    for_muon = matrices_of_layers(model)
    names = [name for name, _ in model.named_parameters()]
    rules = {name: next((rule for rule in settings.groups if fnmatchcase(name, rule.pattern)), None) for name in names}
    _check_patterns(settings, rules, for_muon)
    groups: dict[OptimizerKind, dict[tuple[str | None, bool], dict[str, Any]]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        rule = rules[name] or ParameterGroup(pattern="")
        kind = rule.kind or settings.kind
        if kind == "muon" and name not in for_muon:
            kind = "adamw"
        peak = settings.learning_rate * rule.rate_factor
        decay = settings.weight_decay if rule.weight_decay is None else rule.weight_decay
        decays, pattern = parameter.ndim >= 2, rule.pattern or None
        new = {"params": [], "lr": peak, "weight_decay": decay if decays else 0.0, "peak": peak, "pattern": pattern}
        groups.setdefault(kind, {}).setdefault((pattern, decays), new)["params"].append(parameter)
    return {kind: list(by_rule.values()) for kind, by_rule in groups.items()}


def _check_patterns(
    settings: OptimizerSettings, rules: Mapping[str, ParameterGroup | None], for_muon: set[str]
) -> None:
    """rules: parameter -> the group that holds for it."""
    for number, group in enumerate(settings.groups):
        matched = [name for name, rule in rules.items() if rule is group]
        if not matched:
            near = difflib.get_close_matches(group.pattern, rules, n=3, cutoff=0.0)
            reason = f"matches no parameter; the nearest of {len(rules)} are {', '.join(near)}"
            if any(fnmatchcase(name, group.pattern) for name in rules):
                reason = "matches only parameters that groups before it match: remove it or move it up"
            raise SettingsError(f'optimizer.groups.{number}: pattern "{group.pattern}" {reason}')
        if group.kind == "muon" and for_muon.isdisjoint(matched):
            raise SettingsError(
                f'optimizer.groups.{number}: muon can train no parameter that pattern "{group.pattern}" '
                f"matches ({matched[0]} is one of {len(matched)}): choose another kind or pattern"
            )


class Optimizers:
    """All optimizers of a model: one `torch.optim.Optimizer` per kind with parameters. Each group keeps its rate.

    precision: fp32 or bf16, as the forward passes have it.
    """

    def __init__(self, model: nn.Module, settings: OptimizerSettings, precision: PrecisionName) -> None:
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        self._optimizers = [
            OPTIMIZERS[kind](groups, settings, precision) for kind, groups in parameter_groups(model, settings).items()
        ]
        self._peak = self._rate = settings.learning_rate

    @property
    def _groups(self) -> Groups:
        return [group for optimizer in self._optimizers for group in optimizer.param_groups]

    def set_rates(self, share: float) -> None:
        """Sets each group's rate to that share of its peak."""
        self._rate = self._peak * share
        for group in self._groups:
            group["lr"] = group["peak"] * share

    def rates(self) -> dict[str, float]:
        """ "learning_rate", and "learning_rate/<pattern>" for each group of the settings with another rate."""
        others = [group for group in self._groups if group["peak"] != self._peak]
        by_pattern = {f"learning_rate/{group['pattern']}": float(group["lr"]) for group in others}
        return {"learning_rate": self._rate, **by_pattern}

    def step(self) -> None:
        """Applies the gradients, and clears them."""
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """All state tensors by `<parameter>/<key>`, for instance `encoder.final_norm.weight/exp_avg`."""
        return {
            f"{name}/{key}": value
            for parameter, name in self._names.items()
            for optimizer in self._optimizers
            for key, value in optimizer.state.get(parameter, {}).items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes over what `state` returned. Each optimizer puts its tensors on the device where it needs them."""
        for optimizer in self._optimizers:
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            numbers = {self._names[parameter]: number for number, parameter in enumerate(parameters)}
            own: dict[int, dict[str, Tensor]] = {}
            for full_name, value in state.items():
                name, key = full_name.rsplit("/", 1)
                if name in numbers:
                    own.setdefault(numbers[name], {})[key] = value
            optimizer.load_state_dict({**optimizer.state_dict(), "state": own})
