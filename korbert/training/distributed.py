"""Training in several processes, as `torchrun` starts them. Without its variables there is one process."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from korbert.errors import SettingsError

__all__ = ["World", "add_over_world", "joined", "refuse_environment", "world", "wrap"]

_WAYS_OUT = "run `unset RANK WORLD_SIZE LOCAL_RANK`, or leave torchrun out"


@dataclass(frozen=True, slots=True)
class World:
    """This process among those of the training run."""

    rank: int = 0
    size: int = 1

    @property
    def writes(self) -> bool:
        """True in the one process that writes files and shows progress."""
        return self.rank == 0


def world() -> World:
    """From RANK and WORLD_SIZE, which torchrun sets. SettingsError if they contradict each other."""
    rank, size = (_number(name, default) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    if not 0 <= rank < size or (size > 1 and "RANK" not in os.environ):
        raise SettingsError(f"{_variables()}: no process among several has these: {_WAYS_OUT}")
    return World(rank, size)


def refuse_environment() -> None:
    """Raises SettingsError if torchrun's variables make this process one of several: a stage trains in one process."""
    if world() != World():
        raise SettingsError(f"{_variables()}: as of one process among several, but a stage trains in one: {_WAYS_OUT}")


def _number(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        raise SettingsError(f"{name}={os.environ[name][:40]!r}: is no whole number: {_WAYS_OUT}") from None


def _variables() -> str:
    return " ".join(f"{name}={os.environ[name][:40]}" for name in ("RANK", "WORLD_SIZE") if name in os.environ)


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """Connects the processes while inside, unless there is only one or the caller has connected them."""
    here = world()
    if here.size == 1 or torch.distributed.is_initialized():
        yield here
        return
    # Functions of this module hold the current group as a default argument. Imported by DistributedDataParallel, while
    # there is a group, they keep its threads alive until Python ends, which now and then aborts the process (SIGABRT).
    importlib.import_module("torch.distributed.nn.functional")
    if device.type == "cuda":
        torch.cuda.set_device(_number("LOCAL_RANK", 0))  # what plain "cuda" means from here on
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield here
    finally:
        torch.distributed.destroy_process_group()


def wrap(module: nn.Module, here: World) -> nn.Module:
    """The module with gradients averaged over all processes; unchanged if there is one process."""
    return module if here.size == 1 else nn.parallel.DistributedDataParallel(module)


def add_over_world(values: Tensor, here: World) -> Tensor:
    """The sum of `values` over all processes."""
    if here.size > 1:
        torch.distributed.all_reduce(values)
    return values
