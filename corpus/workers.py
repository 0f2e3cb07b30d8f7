"""Work units on processes that survive a unit that kills or hangs its worker, and that die with their parent."""

import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import Any, Generic, Literal, TypeVar

from pebble import ProcessExpired, ProcessPool

from korbert.errors import KorbertError

__all__ = ["Lost", "Outcome", "run_units"]

U = TypeVar("U")
R = TypeVar("R")

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_AHEAD = 2  # units handed over before a worker is free, so that none waits
_MOST_RESTARTS = 3  # of the whole pool without one unit finished between them

_not_started: Exception | None = None  # in a worker: why its initializer failed

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lost(Generic[U]):
    """A unit that could not be halved any more and still ended its worker."""

    unit: U
    reason: Literal["crashed", "timeout"]
    detail: str


@dataclass
class Outcome(Generic[U, R]):
    """What became of one unit: a single result, or those of the pieces it was halved into, in their order."""

    unit: U
    results: list[R] = field(default_factory=list)
    lost: list[Lost[U]] = field(default_factory=list)
    halved: bool = False


def run_units(
    function: Callable[[U], R],
    units: Iterable[U],
    *,
    workers: int,
    deadline: Callable[[U], float] | None = None,
    split: Callable[[U], tuple[U, U] | None] | None = None,
    initializer: Callable[..., None] | None = None,
    initargs: tuple[Any, ...] = (),
) -> Iterator[Outcome[U, R]]:
    """Each unit's outcome, as they finish: what a unit writes must be named by the unit, not by its turn.

    function and initializer are module-level functions; units are taken as workers come free, a few ahead.
    deadline: seconds that a unit may take. A unit that passes it, or whose worker dies, goes through `split` into two,
    and so on until `split` returns None; then it is lost. Without `split` the death of a worker is a KorbertError.
    An exception raised by the function stops all and is raised here.
    """
    run = _Run(function, deadline, split)
    source = iter(units)
    restarts = 0
    while run.has_more(source):
        try:
            with _pool(workers, initializer, initargs) as pool:
                for outcome in run.drain(pool, source, workers + _AHEAD):
                    restarts = 0
                    yield outcome
        except BrokenProcessPool as error:  # a worker died while it had nothing to do: what was under way is done again
            restarts += 1
            _logger.warning("the worker processes ended (%s): starting them again", error)
            if restarts > _MOST_RESTARTS:
                raise KorbertError(
                    f"worker processes end as soon as they start ({error}): too little memory? Try fewer --workers; "
                    'a script of your own needs `if __name__ == "__main__":` around its calls'
                ) from error


@dataclass
class _Task(Generic[U, R]):
    """A unit or a piece of one. The path is its place in the halving: () whole, (0,) first half, (0, 1) its second."""

    unit: U
    path: tuple[int, ...]
    family: "_Family[U, R]"


@dataclass
class _Family(Generic[U, R]):
    """A whole unit with what its pieces brought so far."""

    unit: U
    open: int = 1
    results: dict[tuple[int, ...], R] = field(default_factory=dict)
    lost: dict[tuple[int, ...], Lost[U]] = field(default_factory=dict)

    def outcome(self) -> Outcome[U, R]:
        results = [self.results[path] for path in sorted(self.results)]
        lost = [self.lost[path] for path in sorted(self.lost)]
        return Outcome(self.unit, results, lost, halved=() not in self.results)


class _Run(Generic[U, R]):
    """The units under way. Outlives the pool, so that a broken pool loses nothing."""

    def __init__(
        self,
        function: Callable[[U], R],
        deadline: Callable[[U], float] | None,
        split: Callable[[U], tuple[U, U] | None] | None,
    ) -> None:
        self._function = function
        self._deadline = deadline
        self._split = split
        self._open: list[_Task[U, R]] = []  # handed to no pool yet, or to one that broke

    def drain(self, pool: ProcessPool, source: Iterator[U], most: int) -> Iterator[Outcome[U, R]]:
        waiting: dict[Future[R], _Task[U, R]] = {}
        try:
            while True:
                while len(waiting) < most and (task := self._next(source)) is not None:
                    waiting[self._schedule(pool, task)] = task
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    self._settle(future, waiting[future])
                    family = waiting.pop(future).family
                    if not family.open:
                        yield family.outcome()
        finally:
            self._open.extend(waiting.values())

    def _schedule(self, pool: ProcessPool, task: _Task[U, R]) -> Future[R]:
        seconds = None if self._deadline is None else self._deadline(task.unit)
        try:
            future: Future[R] = pool.schedule(_call, args=(self._function, task.unit), timeout=seconds)
        except RuntimeError as error:  # what pebble raises when its workers are gone
            self._open.insert(0, task)
            raise BrokenProcessPool(str(error)) from error
        return future

    def has_more(self, source: Iterator[U]) -> bool:
        """Whether a pool is needed (again)."""
        if (task := self._next(source)) is not None:
            self._open.insert(0, task)
        return task is not None

    def _next(self, source: Iterator[U]) -> _Task[U, R] | None:
        if self._open:
            return self._open.pop(0)
        for unit in source:
            return _Task(unit, (), _Family(unit))
        return None

    def _settle(self, future: Future[R], task: _Task[U, R]) -> None:
        """Takes in a result, or halves what ended its worker."""
        error = future.exception()
        if error is None:
            task.family.results[task.path] = future.result()
            task.family.open -= 1
        elif isinstance(error, ProcessExpired):
            self._halve(task, Lost(task.unit, "crashed", f"the process ended with code {error.exitcode}"))
        elif isinstance(error, TimeoutError) and error.__cause__ is None:  # pebble's own, not the function's
            self._halve(task, Lost(task.unit, "timeout", f"no result after {error.args[-1]:g} seconds"))
        else:
            raise error

    def _halve(self, task: _Task[U, R], lost: Lost[U]) -> None:
        if self._split is None:
            raise KorbertError(
                f"a worker died ({lost.detail}): too little memory? Run again to resume, with fewer --workers"
            )
        halves = self._split(task.unit)
        if halves is None:
            task.family.lost[task.path] = lost
            task.family.open -= 1
            return
        _logger.warning("a part was halved: %s", lost.detail)
        self._open += [_Task(half, (*task.path, index), task.family) for index, half in enumerate(halves)]
        task.family.open += 1


@contextmanager
def _pool(workers: int, initializer: Callable[..., None] | None, initargs: tuple[Any, ...]) -> Iterator[ProcessPool]:
    """A pool that is stopped at once when the block is left by an exception, Ctrl-C included."""
    pool = ProcessPool(
        max_workers=workers,
        initializer=_start_worker,
        initargs=(os.getpid(), initializer, initargs),
        context=multiprocessing.get_context("spawn"),
    )
    try:
        _start(pool)
        yield pool
        pool.close()  # type: ignore[no-untyped-call]
    except BaseException:
        pool.stop()  # type: ignore[no-untyped-call]
        raise
    finally:
        pool.join()


def _start(pool: ProcessPool) -> None:
    """Starts the workers so that Ctrl-C in a terminal reaches the parent alone, which then ends them.

    Pebble's workers ignore it, but only once they have come up; a blocked signal stays blocked in what is started.
    """
    resource_tracker.ensure_running()  # or its start below would unblock the signal
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        started: bool = pool.active
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
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
