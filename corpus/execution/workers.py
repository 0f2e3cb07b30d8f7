"""Work units, run by local processes or on a Ray cluster. One that kills or hangs its worker is halved repeatedly."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from pebble import ProcessExpired

from corpus.execution.parts import Counts, HasPart, unfinished
from korbert.errors import KorbertError
from korbert.progress import track

__all__ = ["Lost", "Outcome", "Workers", "local_threads", "run_parts", "run_units"]

U = TypeVar("U")
R = TypeVar("R")
P = TypeVar("P", bound=HasPart)

_AHEAD = 2  # units scheduled beyond the number of workers, so that none waits
_MAX_RESTARTS = 3  # of the whole pool, in a row without a finished unit

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Workers:
    """What runs work units: `count` processes of this machine, or actors of a Ray cluster. The output is the same.

    address: of the cluster; None: that in RAY_ADDRESS, or one that is started on this machine. All machines of a
    cluster must share the output folder.
    """

    count: int
    runner: Literal["native", "ray"] = "native"
    address: str | None = None


def local_threads(workers: "int | Workers") -> int:
    """Threads for work that a single machine has to do."""
    if isinstance(workers, int):
        return workers
    return min(workers.count, os.cpu_count() or 1)


class _Pool(Protocol):
    def schedule(self, function: Callable[[U], R], unit: U, seconds: float | None) -> "Future[R]": ...


@dataclass(frozen=True)
class Lost(Generic[U]):
    """A unit that cannot be halved and still ends its worker.

    detail: goes into artifacts, so it does not depend on the runner; the log says how the worker died.
    """

    unit: U
    reason: Literal["crashed", "timeout"]
    detail: str


@dataclass
class Outcome(Generic[U, R]):
    """The outcome of one unit: a single result, or those of the pieces it was halved into, in order."""

    unit: U
    results: list[R] = field(default_factory=list)
    lost: list[Lost[U]] = field(default_factory=list)
    halved: bool = False


def run_units(
    function: Callable[[U], R],
    units: Iterable[U],
    *,
    workers: int | Workers,
    deadline: Callable[[U], float] | None = None,
    split: Callable[[U], tuple[U, U] | None] | None = None,
    initializer: Callable[..., None] | None = None,
    initargs: tuple[Any, ...] = (),
) -> Iterator[Outcome[U, R]]:
    """The outcome of each unit, in the order of completion: the files of a unit must be named by the unit.

    function and initializer are module-level functions. Units are taken from the iterable as workers come free.
    deadline: seconds that a unit may take. A unit that exceeds it, or whose worker dies, is split in two by `split`,
    and so on until `split` returns None; then it is lost. Without `split`, the death of a worker is a KorbertError. An
    exception raised by the function stops everything and is raised here.
    """
    workers = Workers(workers) if isinstance(workers, int) else workers
    run = _Run(function, deadline, split)
    source = iter(units)
    restarts = 0
    while run.has_more(source):
        try:
            with _pool(workers, initializer, initargs) as pool:
                for outcome in run.drain(pool, source, workers.count + _AHEAD):
                    restarts = 0
                    yield outcome
        except BrokenProcessPool as error:  # an idle worker died: units under way are done again
            restarts += 1
            _logger.warning("the worker processes ended (%s): starting them again", error)
            if restarts > _MAX_RESTARTS:
                raise KorbertError(
                    f"worker processes end as soon as they start ({error}): too little memory? Try fewer --workers; "
                    'a script of your own needs `if __name__ == "__main__":` around its calls'
                ) from error


def run_parts(
    description: str,
    function: Callable[[P], Counts],
    units: Sequence[P],
    *,
    workers: int | Workers,
    initializer: Callable[..., None] | None = None,
    initargs: tuple[Any, ...] = (),
) -> Counter[str]:
    """Runs the units whose parts are not finished. Returns the summed counts of all units.

    function: finishes the part of a unit. description: shown beside the progress. Otherwise as `run_units`.
    """
    pending, totals = unfinished(units)
    with track(description, total=len(units), unit="parts", done=len(units) - len(pending)) as advance:
        for outcome in run_units(function, pending, workers=workers, initializer=initializer, initargs=initargs):
            totals.update(outcome.results[0])
            advance(1)
    return totals


@dataclass
class _Task(Generic[U, R]):
    """A unit or a piece of one. path: its place in the halving: () whole, (0,) first half, (0, 1) second half of it."""

    unit: U
    path: tuple[int, ...]
    family: "_Family[U, R]"


@dataclass
class _Family(Generic[U, R]):
    """A whole unit, with the results of its pieces so far. open: pieces without a result."""

    unit: U
    open: int = 1
    results: dict[tuple[int, ...], R] = field(default_factory=dict)
    lost: dict[tuple[int, ...], Lost[U]] = field(default_factory=dict)

    def outcome(self) -> Outcome[U, R]:
        results = [self.results[path] for path in sorted(self.results)]
        lost = [self.lost[path] for path in sorted(self.lost)]
        return Outcome(self.unit, results, lost, halved=() not in self.results)


class _Run(Generic[U, R]):
    """The units under way. It outlives the pool: a broken pool loses none."""

    def __init__(
        self,
        function: Callable[[U], R],
        deadline: Callable[[U], float] | None,
        split: Callable[[U], tuple[U, U] | None] | None,
    ) -> None:
        self._function = function
        self._deadline = deadline
        self._split = split
        self._open: list[_Task[U, R]] = []  # not scheduled yet, or in a pool that broke

    def drain(self, pool: _Pool, source: Iterator[U], max_waiting: int) -> Iterator[Outcome[U, R]]:
        """Runs all units in the pool, `max_waiting` scheduled at a time."""
        waiting: dict[Future[R], _Task[U, R]] = {}
        try:
            while True:
                while len(waiting) < max_waiting and (task := self._next(source)) is not None:
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

    def _schedule(self, pool: _Pool, task: _Task[U, R]) -> "Future[R]":
        seconds = None if self._deadline is None else self._deadline(task.unit)
        try:
            return pool.schedule(self._function, task.unit, seconds)
        except BrokenProcessPool:
            self._open.insert(0, task)
            raise

    def has_more(self, source: Iterator[U]) -> bool:
        """Whether a pool is needed, or needed again."""
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
        """Stores a result, or halves the unit that ended its worker."""
        error = future.exception()
        if error is None:
            task.family.results[task.path] = future.result()
            task.family.open -= 1
        elif isinstance(error, ProcessExpired):
            why = f"the process ended with code {error.exitcode}" if error.exitcode else str(error)
            self._halve(task, Lost(task.unit, "crashed", "its worker process ended"), why)
        elif isinstance(error, TimeoutError) and error.__cause__ is None:  # pebble's own, not the function's
            why = f"no result after {error.args[-1]:g} seconds"
            self._halve(task, Lost(task.unit, "timeout", why), why)
        else:
            raise error

    def _halve(self, task: _Task[U, R], lost: Lost[U], why: str) -> None:
        if self._split is None:
            raise KorbertError(f"a worker died ({why}): too little memory? Run again to resume, with fewer --workers")
        halves = self._split(task.unit)
        if halves is None:
            task.family.lost[task.path] = lost
            task.family.open -= 1
            return
        _logger.warning("a part was halved: %s", why)
        self._open += [_Task(half, (*task.path, index), task.family) for index, half in enumerate(halves)]
        task.family.open += 1


def _pool(
    workers: Workers, initializer: Callable[..., None] | None, initargs: tuple[Any, ...]
) -> AbstractContextManager[_Pool]:
    if workers.runner == "ray":
        from corpus.execution.cluster import actors

        return actors(workers.address, workers.count, initializer, initargs)
    from corpus.execution.processes import processes

    return processes(workers.count, initializer, initargs)
