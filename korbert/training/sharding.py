"""Shards weights, gradients and optimizer state over the processes (FSDP2, `fully_shard`).

Its units are the layers and the rest. A unit is whole while it computes: a process sends its part before that, and
gets its part of the gradient after it. All processes must therefore call each layer equally often.
The PyTorch modules for this are slow to import, so a single process does not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn

from korbert.world import connected

__all__ = ["is_sharded", "like", "shard", "whole", "whole_outside_layers"]


def shard(module: nn.Module, device: torch.device) -> None:
    """Shards the module's parameters, equal in all processes, in place. Layers: members of a ModuleList."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (connected().size,))
    lists = [one for one in module.modules() if isinstance(one, nn.ModuleList)]
    # Encoders of transformers have lists of lists: the inner ones come first.
    for layer in chain.from_iterable(reversed(lists)):
        if not isinstance(layer, nn.ModuleList):
            fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)


def is_sharded(module: nn.Module) -> bool:
    """Whether `shard` has spread it, or a part of it."""
    if connected().size == 1:
        return False
    from torch.distributed.fsdp import FSDPModule

    return any(isinstance(one, FSDPModule) for one in module.modules())


@contextmanager
def whole_outside_layers(module: nn.Module) -> Iterator[None]:
    """Gathers parameters outside of layers, so that parts of a sharded module may be called on their own."""
    if not is_sharded(module):
        yield
        return
    from torch.distributed.fsdp import FSDPModule

    assert isinstance(module, FSDPModule)
    module.unshard()
    try:
        yield
    finally:
        module.reshard()


def whole(tensor: Tensor) -> Tensor:
    """Gathers a sharded tensor; all processes must call this together. Other tensors are returned unchanged."""
    if connected().size == 1:
        return tensor
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A full tensor on the parameter's device; or this process's shard if the parameter is sharded.

    A tensor on "meta" gives one without values. One of another shape than the parameter stays where it is.
    """
    if tensor.is_meta:
        shaped = parameter if tensor.shape == parameter.shape else tensor
        return torch.empty_like(shaped, dtype=tensor.dtype, device=parameter.device)
    if tensor.shape != parameter.shape:  # a count of steps: read on the processor without waiting for a device
        return tensor
    there = tensor.to(parameter.device)
    if connected().size == 1:
        return there
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(parameter, DTensor):
        return there
    return distribute_tensor(there, parameter.device_mesh, parameter.placements, src_data_rank=None)
