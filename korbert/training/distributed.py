"""Several processes on one training run, as `torchrun` starts them. Without its variables there is one."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["World", "add_over_world", "joined", "world", "wrap"]


@dataclass(frozen=True, slots=True)
class World:
    """This process among all that train together."""

    rank: int = 0
    size: int = 1

    @property
    def writes(self) -> bool:
        """True in the one process that writes files and shows progress."""
        return self.rank == 0


def world() -> World:
    """From RANK and WORLD_SIZE, which torchrun sets."""
    return World(rank=int(os.environ.get("RANK", "0")), size=int(os.environ.get("WORLD_SIZE", "1")))


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """The processes are connected while inside, unless there is one, or the caller has connected them already."""
    here = world()
    if here.size == 1 or torch.distributed.is_initialized():
        yield here
        return
    # Its functions take the group of the moment as a default argument. DistributedDataParallel imports it while there
    # is one, whose threads would then live on to the end of Python, which now and then aborts the process (SIGABRT).
    importlib.import_module("torch.distributed.nn.functional")
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))  # what plain "cuda" means from here on
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield here
    finally:
        torch.distributed.destroy_process_group()


def wrap(module: nn.Module, here: World) -> nn.Module:
    """The module with gradients averaged over all processes; itself where there is one."""
    return module if here.size == 1 else nn.parallel.DistributedDataParallel(module)


def add_over_world(values: Tensor, here: World) -> Tensor:
    """The sum of `values` over all processes."""
    if here.size > 1:
        torch.distributed.all_reduce(values)
    return values
