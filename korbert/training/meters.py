"""Means of the metrics of a run since its last line."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["Meter"]


class Meter:
    """Means of metrics over steps. Sums stay on the device in float64, so that adding waits for nothing.

    steps: in the sums.
    """

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
