"""This process among those of one training, as `torchrun` starts them. Without its variables there is one process.

All of them run the same code on the same inputs. Work for one process only (decisions, files) uses `broadcast`
or `world().is_main_process`. `korbert.training.distributed.connected_processes` connects them; without it, and in a
single process, every function here returns its input. Only connected processes load PyTorch.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from korbert.errors import SettingsError

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_T = TypeVar("_T")
_WAYS_OUT = "run `unset RANK WORLD_SIZE LOCAL_RANK`, or leave torchrun out"


@dataclass(frozen=True, slots=True)
class World:
    """This process among those of the training run."""

    rank: int = 0
    size: int = 1

    @property
    def is_main_process(self) -> bool:
        """True in the one process that decides, writes files and shows progress."""
        return self.rank == 0

    @property
    def share(self) -> slice:
        """This process's part of a sequence: every size-th entry. The parts of all cover it once."""
        return slice(self.rank, None, self.size)


def world() -> World:
    """Reads RANK and WORLD_SIZE, which torchrun sets. SettingsError if they contradict each other."""
    rank, size = (number_in(name, default) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    if not 0 <= rank < size or (size > 1 and "RANK" not in os.environ):
        raise SettingsError(
            "{variables}: RANK does not fit WORLD_SIZE: {ways_out}", variables=variables(), ways_out=_WAYS_OUT
        )
    return World(rank, size)


def is_secondary_rank() -> bool:
    """Whether this is one of several processes, and another one logs and shows progress for all."""
    try:
        return not world().is_main_process
    except SettingsError:
        return False


def number_in(name: str, default: int) -> int:
    """An integer in an environment variable. SettingsError if it is something else."""
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        raise SettingsError(
            "{name}={environ!r}: is not an integer: {ways_out}",
            name=name,
            environ=os.environ[name][:40],
            ways_out=_WAYS_OUT,
        ) from None


def variables() -> str:
    """The variables that make this process one of several, for errors."""
    return " ".join(f"{name}={os.environ[name][:40]}" for name in ("RANK", "WORLD_SIZE") if name in os.environ)


class Connection:
    """The CPU process group of the connected processes; None: no group."""

    group: "ProcessGroup | None" = None


def current_world() -> World:
    """Returns this process among those that `connected_processes` connected; a world of one if there are none."""
    return World() if Connection.group is None else world()


def broadcast(make: Callable[[], _T]) -> _T:
    """The result of `make`, called in rank 0 once all processes arrive here; the others wait for it, however long.

    The value is pickled. If `make` raises, rank 0 ends, and the closed connection ends the others.
    """
    if Connection.group is None:
        return make()
    from torch import distributed

    distributed.barrier(group=Connection.group)
    box = [make() if world().is_main_process else None]
    distributed.broadcast_object_list(box, src=0, group=Connection.group)
    return box[0]  # type: ignore[return-value]


def all_reduce(values: Sequence[int], how: str = "SUM") -> list[int]:
    """The sums of whole numbers over all processes, or their maxima with "MAX"."""
    if Connection.group is None:
        return list(values)
    import torch

    numbers = torch.tensor(values, dtype=torch.int64)
    operation = getattr(torch.distributed.ReduceOp, how)
    torch.distributed.all_reduce(numbers, op=operation, group=Connection.group)
    return [int(number) for number in numbers.tolist()]


def all_reduce_max(value: int) -> int:
    """The maximum over all processes."""
    return all_reduce([value], "MAX")[0]


def require_rows(name: str, rows: int) -> None:
    """Raises SettingsError if a batch has fewer rows than there are processes. name: of the setting."""
    size = current_world().size
    if rows < size:
        remedy = f"start at most {rows}, as with `torchrun --nproc_per_node {rows}`, or raise {name}"
        raise SettingsError(
            "{name} {rows}: a batch has fewer rows than the {size} processes sharing them: {remedy}",
            name=name,
            rows=rows,
            size=size,
            remedy=remedy,
        )
