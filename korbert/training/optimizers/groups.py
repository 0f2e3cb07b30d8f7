"""Assigns parameters to optimizers, with learning rate and weight decay."""

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from korbert.errors import SettingsError
from korbert.training.optimizers.table import OPTIMIZERS
from korbert.training.settings import OptimizerKind, OptimizerSettings, ParameterGroup

__all__ = ["parameter_groups"]


def parameter_groups(model: nn.Module, settings: OptimizerSettings) -> dict[OptimizerKind, list[dict[str, Any]]]:
    """The groups of each kind's `torch.optim.Optimizer`, over all parameters that need a gradient.

    The first group of the settings whose pattern matches a parameter's name holds for it. Matrices and embeddings
    decay, norms and biases do not, as in Google's BERT code. "peak" is the rate at the end of warmup, "pattern" that of
    the group of the settings, None for parameters without one.

    Raises SettingsError for a pattern that matches no parameter, or a kind that can train none of those it matches.
    """
    names = [name for name, _ in model.named_parameters()]
    rules = {name: next((rule for rule in settings.groups if fnmatchcase(name, rule.pattern)), None) for name in names}
    made_for = {kind: optimizer.made_for(model) for kind, optimizer in OPTIMIZERS.items() if optimizer.made_for}
    for number, group in enumerate(settings.groups):
        matched = [name for name in names if rules[name] is group]
        if not matched:
            raise SettingsError(f'optimizer.groups.{number}: pattern "{group.pattern}" {_why_idle(group, names)}')
        if group.kind in made_for and made_for[group.kind].isdisjoint(matched):
            raise SettingsError(
                f'optimizer.groups.{number}: {group.kind} can train no parameter that pattern "{group.pattern}" '
                f"matches ({matched[0]} is one of {len(matched)}): choose another kind or pattern"
            )

    groups: dict[OptimizerKind, dict[tuple[str | None, bool], dict[str, Any]]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        rule = rules[name]
        kind = (rule and rule.kind) or settings.kind
        if kind in made_for and name not in made_for[kind]:
            kind = "adamw"
        peak = settings.learning_rate * (rule.rate_factor if rule else 1.0)
        decay = rule.weight_decay if rule and rule.weight_decay is not None else settings.weight_decay
        decays = parameter.ndim >= 2
        pattern = rule.pattern if rule else None
        new = {"params": [], "lr": peak, "weight_decay": decay if decays else 0.0, "peak": peak, "pattern": pattern}
        groups.setdefault(kind, {}).setdefault((pattern, decays), new)["params"].append(parameter)
    return {kind: list(its.values()) for kind, its in groups.items()}


def _why_idle(group: ParameterGroup, names: Sequence[str]) -> str:
    """Explains why a group's pattern is no parameter's first match."""
    if any(fnmatchcase(name, group.pattern) for name in names):
        return "matches only parameters that groups before it match: remove it or move it up"
    near = difflib.get_close_matches(group.pattern, names, n=3, cutoff=0.0)
    return f"matches no parameter; the nearest of {len(names)} are {', '.join(near)}"
