"""Local worker processes. One that dies or hangs does not end the others, and all die with their parent."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from pebble import ProcessPool

from korbert.system import Spawning, die_with_parent, starting_processes

U = TypeVar("U")
R = TypeVar("R")

_not_started: Exception | None = None  # in a worker: the error of its initializer


class Processes(ProcessPool):
    """A pool of pebble's, which survives the death of its workers."""

    def run(self, function: Callable[[U], R], unit: U, seconds: float | None) -> "Future[R]":
        """A future. Its exception is pebble's ProcessExpired if the worker dies, TimeoutError after `seconds`.

        Raises BrokenProcessPool once all workers are gone.
        """
        try:
            future: Future[R] = self.schedule(_call, args=(function, unit), timeout=seconds)
        except RuntimeError as error:  # pebble's error when its workers are gone
            raise BrokenProcessPool(str(error)) from error
        return future


@contextmanager
def processes(workers: int, initializer: Callable[[], None] | None) -> Iterator[Processes]:
    """A pool that is stopped at once if the block raises an exception, Ctrl-C included."""
    pool = Processes(
        max_workers=workers,
        initializer=_start_worker,
        initargs=(os.getpid(), initializer),
        context=Spawning(),  # which the pool keeps until its workers have ended
    )
    try:
        # Ctrl-C in a terminal reaches the parent alone: workers of pebble that are up ignore it.
        with starting_processes(signal.SIGINT):
            has_started: bool = pool.active
        if not has_started:
            raise BrokenProcessPool("the workers did not start")
        yield pool
        pool.close()  # type: ignore[no-untyped-call]
    except BaseException:
        pool.stop()  # type: ignore[no-untyped-call]
        raise
    finally:
        pool.join()


def prepare(initializer: Callable[[], None] | None) -> None:
    """Prepares this process for units."""
    import pyarrow

    pyarrow.set_cpu_count(1)  # the workers are the parallelism
    if initializer is not None:
        initializer()


def _start_worker(parent: int, initializer: Callable[[], None] | None) -> None:
    die_with_parent(parent)  # threads of the caller and the pool, which outlive all work, start workers
    try:
        prepare(initializer)
    except Exception as error:
        global _not_started
        _not_started = error


def _call(function: Callable[[U], R], unit: U) -> R:
    if _not_started is not None:
        raise _not_started  # from here it reaches the parent
    return function(unit)
