"""Connects the processes started by `torchrun` (korbert/system/ranks.py), and ends them together.

A process that fails reports the error; the others notice the closed connection and end silently.
"""

import importlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import Tensor
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]  # public, but not marked so

from korbert.errors import EndedElsewhere, ProcessLost, SettingsError
from korbert.messages import Message
from korbert.system import Connection, World, number_in, variables, world

WAIT = "KORBERT_WAIT_FOR_RANKS"  # seconds that the processes wait for each other when they start
_WAIT_SECONDS = 300
_TRAINING = timedelta(minutes=30)  # for an exchange of tensors; the end of a process is noticed at once
_DECISIONS = timedelta(days=30)  # for rank 0, which analyses texts or fits a baseline while the others wait
_SECONDS_FOR_FIRST = 1.0  # time for rank 0 to hit an error that all processes share


@contextmanager
def connected_processes(device: torch.device) -> Iterator[World]:
    """Connects the processes while inside, unless there is only one or they are connected.

    Raises SettingsError, naming missing ranks, if not all connect within KORBERT_WAIT_FOR_RANKS seconds (300).
    An error inside ends all processes: it is raised where it occurs (in rank 0 if it occurs there, too), and the
    others raise EndedElsewhere. ProcessLost if a process ended without an error, as when killed.
    """
    here = world()
    if here.size == 1 or Connection.group is not None:
        yield here
        return
    # Functions of these modules hold the current group as a default argument. Imported while there is a group, by
    # DistributedDataParallel and by the first checkpoint, they keep its threads alive until Python ends, which now and
    # then aborts the process (SIGABRT).
    for name in ("torch.distributed.nn.functional", "torch.distributed.checkpoint.state_dict"):
        importlib.import_module(name)
    if device.type == "cuda":
        torch.cuda.set_device(number_in("LOCAL_RANK", 0))  # the device of plain "cuda" from here on
    store = _rendezvous(here)
    backend = "nccl" if device.type == "cuda" else "gloo"
    torch.distributed.init_process_group(backend, store=store, rank=here.rank, world_size=here.size, timeout=_TRAINING)
    Connection.group = torch.distributed.new_group(backend="gloo", timeout=_DECISIONS)
    try:
        yield here
    except Exception as error:
        raise _reported_once(error, here, store) from error
    finally:
        Connection.group = None
        torch.distributed.destroy_process_group()


def _rendezvous(here: World) -> Store:
    """The store that connects the processes, once all of them have registered in it."""
    seconds = number_in(WAIT, _WAIT_SECONDS)
    host = os.environ.get("MASTER_ADDR")
    port = number_in("MASTER_PORT", 0)
    if not host or not port:
        raise SettingsError(
            "{variables}: several processes need MASTER_ADDR and MASTER_PORT, too: start them with "
            "torchrun, or run `unset RANK WORLD_SIZE LOCAL_RANK`",
            variables=variables(),
        )
    hosts = here.is_main_process and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    advice = Message(
        "look at how they were started, then start all anew ({wait}={seconds} is the time that is waited)",
        wait=WAIT,
        seconds=seconds,
    )
    longest = timedelta(seconds=seconds)
    try:
        base = TCPStore(host, port, here.size, is_master=hosts, timeout=longest, wait_for_workers=False)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise SettingsError(
            "{host}:{port}: rank {rank} cannot connect to rank 0 there ({reason}): {advice}",
            host=host,
            port=port,
            rank=here.rank,
            reason=reason,
            advice=advice,
        ) from error
    store = PrefixStore(f"korbert/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", base)
    ranks = {rank: f"rank-{rank}" for rank in range(here.size)}
    store.set(ranks[here.rank], "here")
    try:
        store.wait(list(ranks.values()), longest)
    except RuntimeError:
        missing = [str(rank) for rank, name in ranks.items() if not store.check([name])]
        raise SettingsError(
            "{missing} of {size} processes did not come within {seconds} s (rank {ranks}): {advice}",
            missing=len(missing),
            size=here.size,
            seconds=seconds,
            ranks=", ".join(missing),
            advice=advice,
        ) from None
    return store


def _reported_once(error: Exception, here: World, store: Store) -> Exception:
    """Returns the error in the process that is to report it, EndedElsewhere in the others. The first to ask reports.

    A process asks before its connections close, so it asks before the processes that fail because of the closed
    connections. An error that all processes meet at once (a NaN loss) is left to rank 0.
    """
    if isinstance(error, EndedElsewhere):
        return error
    # Whether an exchange failed; PyTorch has no error class for gloo.
    known = (torch.distributed.DistError, torch.distributed.DistBackendError, torch.distributed.DistNetworkError)
    marks = ("gloo", "Gloo", "NCCL", "Connection closed")
    closed = isinstance(error, known) or (type(error) is RuntimeError and any(mark in str(error) for mark in marks))
    if not here.is_main_process and not closed:
        time.sleep(_SECONDS_FOR_FIRST)
    try:
        first = store.add("failed", 1) == 1
    except RuntimeError:  # the process that holds the store has ended
        first = here.is_main_process
    if not first:
        return EndedElsewhere("another process tells why")
    if closed:
        return ProcessLost(
            "one of {size} processes ended without an error, as when it is killed or memory runs out, and training "
            "needs all of them: what is saved is kept; the same command resumes",
            size=here.size,
        )
    error.add_note(f"rank {here.rank}")
    return error


def add_over_world(values: Tensor, here: World) -> Tensor:
    """The sum of `values` over all processes, in place."""
    if here.size > 1:
        group = None if values.is_cuda else Connection.group
        torch.distributed.all_reduce(values, group=group)
    return values
