"""A second device on a machine with a processor alone: its tensors say `meta`, and compute on the processor.

As on a GPU, an operation on tensors of both devices is an error; only copies and tensors without dimensions may mix.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
_COPIES = {torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default}


class _There(Tensor):
    """value: the tensor on the processor."""

    @staticmethod
    def __new__(cls, value: Tensor) -> "_There":
        like = {"strides": value.stride(), "storage_offset": value.storage_offset(), "dtype": value.dtype}
        made = torch.Tensor._make_wrapper_subclass(cls, value.size(), **like, device=DEVICE)
        made.value = value
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(operation, args, kwargs or {})


class SecondDevice(TorchDispatchMode):
    """Inside, DEVICE is the second device."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(operation, args, kwargs or {})


def _computed(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
    there = any(isinstance(one, _There) for one in tensors)
    if there and operation not in _COPIES and any(one.dim() and not isinstance(one, _There) for one in tensors):
        raise RuntimeError(f"{operation}: expected all tensors on one device")
    into = kwargs.get("device")
    own = {name: torch.device("cpu") if name == "device" and value else value for name, value in kwargs.items()}
    found = operation(*tree_map(_value, args), **tree_map(_value, own))
    if operation is torch.ops.aten.copy_.default:
        return args[0]
    if not (there if into is None else into == DEVICE):
        return found
    wrapped = tree_map(lambda one: _There(one) if isinstance(one, Tensor) else one, found)
    return return_and_correct_aliasing(operation, args, kwargs, wrapped) if there else wrapped


def _value(one: Any) -> Any:
    return one.value if isinstance(one, _There) else one
