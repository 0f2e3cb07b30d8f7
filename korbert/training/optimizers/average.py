"""A running average of the weights, for evaluation and saving; training continues with the weights themselves."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["RunningAverage"]


class RunningAverage:
    """average <- decay x average + (1 - decay) x weights, of all trained parameters, after each update.

    Over the first 1 / (1 - decay) updates it is the plain mean of the weights so far, so that the weights at the start
    have no part in it. Only parameters are averaged; buffers stay as they are.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self._weights = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._averages = {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def add(self, done: int) -> None:
        """Adds the weights after `done` updates, from 1."""
        share = max(1 - self._decay, 1 / done)
        torch._foreach_lerp_(list(self._averages.values()), list(self._weights.values()), share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the model has the averaged weights. Nothing is copied."""
        self.exchange()
        try:
            yield
        finally:
            self.exchange()

    def exchange(self) -> None:
        """Exchanges averages and weights, tensor by tensor."""
        for name, weight in self._weights.items():
            weight.data, self._averages[name] = self._averages[name], weight.data

    def state(self) -> dict[str, Tensor]:
        """The averages by parameter name, for a checkpoint."""
        return dict(self._averages)

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes over what `state` returned."""
        for name, average in self._averages.items():
            average.copy_(state[name])
