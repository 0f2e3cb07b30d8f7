"""Finds the source of non-finite numbers: the first module that outputs one, or the first NaN gradient."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from korbert.errors import ModelError


@contextmanager
def anomalies_named(model: nn.Module, step: int) -> Iterator[None]:
    """Inside, forward passes raise ModelError for the first module whose output is not finite, and backward passes for
    the first function whose gradient is NaN; PyTorch then warns with its forward trace. Results do not change.

    Synchronizes with the device at each module. step: for the error.
    """

    def watch(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def look(module: nn.Module, inputs: Any, output: Any) -> None:
            for value in tree_leaves(output):
                if isinstance(value, Tensor) and not torch.isfinite(value).all():
                    at = f"{name} ({type(module).__name__})" if name else type(module).__name__
                    raise ModelError(
                        f"step {step}: the output of {at} is the first that is not finite: look at this module, or "
                        "lower learning_rate"
                    )

        return look

    with ExitStack() as stack:
        for name, module in model.named_modules():
            handle = module.register_forward_hook(watch(name))
            stack.callback(handle.remove)
        stack.enter_context(torch.autograd.set_detect_anomaly(True))
        try:
            yield
        except RuntimeError as error:
            if "returned nan values" not in str(error):
                raise
            raise ModelError(
                f"step {step}: all outputs are finite, a gradient is not: {error} Look at this function, or lower "
                "learning_rate"
            ) from error
