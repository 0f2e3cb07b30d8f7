"""Work units, run by local processes or on a Ray cluster. One that kills or hangs its worker is halved repeatedly."""

import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

from pebble import ProcessExpired

from corpus.execution.parts import Counts, HasPart, unfinished
from korbert.errors import KorbertError
from korbert.progress import track

U = TypeVar("U")
R = TypeVar("R")
P = TypeVar("P", bound=HasPart)

_AHEAD = 2  # units scheduled beyond the number of workers, so that none waits
_MAX_RESTARTS = 3  # of the whole pool, in a row without a finished unit

_logger = logging.getLogger(__name__)


class Pool(Protocol):
    """What runs units."""

    def run(self, function: Callable[[U], R], unit: U, seconds: float | None) -> "Future[R]": ...


@dataclass(frozen=True)
class Workers:
    """What runs work units: `count` processes of this machine, or actors of a Ray cluster. The output is the same.

    address: of the cluster; None: that in RAY_ADDRESS, or one that is started on this machine. All machines of a
    cluster must share the output folder.
    """

    count: int
    runner: Literal["native", "ray"] = "native"
    address: str | None = None

    def pool(self, initializer: Callable[..., None] | None, initargs: tuple[Any, ...]) -> AbstractContextManager[Pool]:
        """Started workers, each prepared by the initializer."""
        if self.runner == "ray":
            from corpus.execution.cluster import actors

            return actors(self.address, self.count, initializer, initargs)
        from corpus.execution.processes import processes

        return processes(self.count, initializer, initargs)


def local_threads(workers: int | Workers) -> int:
    """Threads for work that a single machine has to do."""
    return workers if isinstance(workers, int) else min(workers.count, os.cpu_count() or 1)


@dataclass(frozen=True, kw_only=True)
class RecordUnit:
    """A work unit of records that can be halved.

    size: bytes of text. first, stop: half-open range of records; stop is None up to their end. is_piece: of a unit that
    was halved.
    """

    size: int
    first: int = 0
    stop: int | None = None
    is_piece: bool = False

    def count_records(self) -> int:
        """The number of records of a unit without a stop."""
        raise NotImplementedError

    def halves(self) -> tuple[Self, Self] | None:
        """Two pieces; None for a single record."""
        stop = self.count_records() if self.stop is None else self.stop
        if stop - self.first < 2:
            return None
        middle, size = (self.first + stop) // 2, self.size // 2
        return (
            replace(self, stop=middle, size=size, is_piece=True),
            replace(self, first=middle, stop=stop, size=size, is_piece=True),
        )


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
    """What became of a unit.

    done: the result of the unit, or those of its pieces, by their path in the halving: () for the whole unit, (0,) for
    its first half, (0, 1) for the second half of that. missing: number of pieces not done yet.
    """

    unit: U
    done: dict[tuple[int, ...], R | Lost[U]] = field(default_factory=dict)
    missing: int = 1

    @property
    def halved(self) -> bool:
        """Whether the unit as a whole has no result."""
        return () not in self.done or isinstance(self.done[()], Lost)

    @property
    def results(self) -> list[R]:
        """The result of the unit, or those of its pieces in order."""
        in_order = (self.done[path] for path in sorted(self.done))
        return [result for result in in_order if not isinstance(result, Lost)]

    @property
    def lost(self) -> list[Lost[U]]:
        """The pieces without a result, in order."""
        in_order = (self.done[path] for path in sorted(self.done))
        return [result for result in in_order if isinstance(result, Lost)]


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
    run = _Run(function, units, deadline, split)
    restarts = 0
    while run.has_more():
        try:
            with workers.pool(initializer, initargs) as pool:
                for outcome in run.drain(pool, workers.count + _AHEAD):
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


class _Task(NamedTuple, Generic[U, R]):
    """A unit, or a piece of one. path: its key in `outcome.done`."""

    unit: U
    path: tuple[int, ...]
    outcome: Outcome[U, R]


class _Run(Generic[U, R]):
    """The units under way. It outlives the pool: a broken pool loses none."""

    def __init__(
        self,
        function: Callable[[U], R],
        units: Iterable[U],
        deadline: Callable[[U], float] | None,
        split: Callable[[U], tuple[U, U] | None] | None,
    ) -> None:
        self._function = function
        self._deadline = deadline
        self._split = split
        self._new = (_Task[U, R](unit, (), Outcome(unit)) for unit in units)
        self._again: deque[_Task[U, R]] = deque()  # halves, and those in a pool that broke

    def has_more(self) -> bool:
        """Whether a pool is needed, or needed again."""
        if not self._again:
            self._again.extend(islice(self._new, 1))
        return bool(self._again)

    def drain(self, pool: Pool, max_waiting: int) -> Iterator[Outcome[U, R]]:
        """Runs all units in the pool, `max_waiting` scheduled at a time."""
        waiting: dict[Future[R], _Task[U, R]] = {}
        try:
            while True:
                while len(waiting) < max_waiting and self.has_more():
                    task = self._again[0]
                    seconds = None if self._deadline is None else self._deadline(task.unit)
                    waiting[pool.run(self._function, task.unit, seconds)] = task
                    self._again.popleft()
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    self.settle(future, waiting[future])
                    outcome = waiting.pop(future).outcome
                    if not outcome.missing:
                        yield outcome
        finally:
            self._again.extend(waiting.values())

    def settle(self, future: Future[R], task: _Task[U, R]) -> None:
        """Stores a result, or halves the unit that ended its worker."""
        error = future.exception()
        result: R | Lost[U]
        if error is None:
            result = future.result()
        else:
            if isinstance(error, ProcessExpired):
                why = f"the process ended with code {error.exitcode}" if error.exitcode else str(error)
                result = Lost(task.unit, "crashed", "its worker process ended")
            elif isinstance(error, TimeoutError) and error.__cause__ is None:  # pebble's own, not the function's
                why = f"no result after {error.args[-1]:g} seconds"
                result = Lost(task.unit, "timeout", why)
            else:
                raise error
            if self._split is None:
                hint = "too little memory? Run again to resume, with fewer --workers"
                raise KorbertError(f"a worker died ({why}): {hint}")
            if (halves := self._split(task.unit)) is not None:
                _logger.warning("a part was halved: %s", why)
                self._again += [_Task(half, (*task.path, i), task.outcome) for i, half in enumerate(halves)]
                task.outcome.missing += 1
                return
        task.outcome.done[task.path] = result
        task.outcome.missing -= 1
