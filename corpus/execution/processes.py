"""Processes of this machine for work units. One that dies or hangs ends no other, and all die with their parent."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from pebble import ProcessPool

from korbert.interruption import noted_signals

__all__ = ["Processes", "processes"]

U = TypeVar("U")
R = TypeVar("R")

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

_not_started: Exception | None = None  # in a worker: why its initializer failed


class Processes:
    """A pool of pebble's, which survives what its workers do."""

    def __init__(self, pool: ProcessPool) -> None:
        self._pool = pool

    def schedule(self, function: Callable[[U], R], unit: U, seconds: float | None) -> "Future[R]":
        """The result to come: pebble's ProcessExpired where the worker dies, its TimeoutError after `seconds`.

        Raises BrokenProcessPool once all workers are gone.
        """
        try:
            future: Future[R] = self._pool.schedule(_call, args=(function, unit), timeout=seconds)
        except RuntimeError as error:  # what pebble raises when its workers are gone
            raise BrokenProcessPool(str(error)) from error
        return future


class _Pool(ProcessPool):
    """Ends its workers before what connects them: one that still starts would end with a traceback for lack of it."""

    def _stop_pool(self) -> None:
        if self._pool_manager_loop is not None:
            self._pool_manager_loop.join()  # it starts new workers for those that ended
            self._pool_manager.worker_manager.force_stop_workers()  # type: ignore[no-untyped-call]
        super()._stop_pool()  # type: ignore[no-untyped-call]


@contextmanager
def processes(workers: int, initializer: Callable[..., None] | None, initargs: tuple[Any, ...]) -> Iterator[Processes]:
    """A pool that is stopped at once when the block is left by an exception, Ctrl-C included."""
    pool = _Pool(
        max_workers=workers,
        initializer=_start_worker,
        initargs=(os.getpid(), initializer, initargs),
        context=multiprocessing.get_context("spawn"),
    )
    try:
        _start(pool)
        yield Processes(pool)
        pool.close()  # type: ignore[no-untyped-call]
    except BaseException:
        pool.stop()  # type: ignore[no-untyped-call]
        raise
    finally:
        pool.join()


def _start(pool: ProcessPool) -> None:
    """Starts the workers. A signal takes effect once all are started; Ctrl-C in a terminal reaches the parent alone.

    An exception between a worker's start and what it is sent leaves a worker that ends with a traceback. Any thread of
    the process may receive the signal that raises it, so blocking it in this thread is not enough. Pebble's workers
    ignore Ctrl-C, but only once they have come up; a blocked signal stays blocked in what is started.
    """
    with noted_signals() as arrived:
        resource_tracker.ensure_running()  # or its start below would unblock the signal
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            started: bool = pool.active
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    if (number := arrived()) is not None:
        signal.raise_signal(number)
    if not started:
        raise BrokenProcessPool("the workers did not start")


def _start_worker(parent: int, initializer: Callable[..., None] | None, initargs: tuple[Any, ...]) -> None:
    _die_with(parent)
    import pyarrow

    pyarrow.set_cpu_count(1)  # the processes are the parallelism
    if initializer is not None:
        try:
            initializer(*initargs)
        except Exception as error:
            global _not_started
            _not_started = error


def _call(function: Callable[[U], R], unit: U) -> R:
    if _not_started is not None:
        raise _not_started  # here, where it reaches the parent
    return function(unit)


def _die_with(parent: int) -> None:
    """Ends this process at the parent's death, by the kernel where it can.

    The kernel's signal comes when the thread that started this process ends. Those threads (the caller's, and the
    pool's own for workers started later) outlive all work.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, daemon=True).start()
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _watch() -> None:
    from multiprocessing.connection import wait as wait_for

    if (process := multiprocessing.parent_process()) is not None:
        wait_for([process.sentinel])
        os._exit(1)
