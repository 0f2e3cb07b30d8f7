"""Work units, run by local processes or on a Ray cluster. One that kills or hangs its worker is halved repeatedly."""

import logging
import operator
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from pebble import ProcessExpired

from korbert.corpus.execution.parts import OutputPart, unfinished
from korbert.errors import KorbertError
from korbert.messages import Message, argument
from korbert.system import track

U = TypeVar("U")
R = TypeVar("R")

_AHEAD = 2  # units scheduled beyond the number of workers, so that none waits

_logger = logging.getLogger(__name__)


class Pool(Protocol):
    """What runs units."""

    def run(self, function: Callable[[U], R], unit: U, seconds: float | None) -> "Future[R]": ...


@dataclass(frozen=True)
class Workers:
    """What runs work units: `count` processes of this machine, or actors of a Ray cluster. The output is the same.

    address: of the cluster; None: the address in RAY_ADDRESS or, if that is unset, a cluster started on this machine.
    All machines of a cluster must share the output folder. gpus: GPUs of each actor.
    """

    count: int
    runner: Literal["native", "ray"] = "native"
    address: str | None = None
    gpus: int = 0

    def pool(self, initializer: Callable[[], None] | None) -> AbstractContextManager[Pool]:
        """Started workers, each prepared by the initializer."""
        if self.runner == "ray":
            from korbert.corpus.execution.cluster import actors

            return actors(self.address, self.count, initializer, self.gpus)
        from korbert.corpus.execution.processes import processes

        return processes(self.count, initializer)


def local_threads(workers: int | Workers) -> int:
    """Threads for work that a single machine has to do."""
    return workers if isinstance(workers, int) else min(workers.count, os.cpu_count() or 1)


@dataclass(frozen=True, kw_only=True)
class RecordUnit:
    """A work unit of records that can be halved.

    size: bytes of text. first, stop: half-open range of records; with stop None, it reaches to the last record.
    is_piece: whether this is a piece of a unit that was halved.
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
        middle = (self.first + stop) // 2
        half = replace(self, stop=middle, size=self.size // 2, is_piece=True)
        return half, replace(half, first=middle, stop=stop)


@dataclass(frozen=True)
class Lost(Generic[U]):
    """A unit that cannot be halved and still ends its worker.

    detail: goes into artifacts, so it does not depend on the runner; the log says how the worker died.
    """

    unit: U
    reason: Literal["crashed", "timeout"]
    detail: str


@dataclass(frozen=True)
class Outcome(Generic[U, R]):
    """What became of a unit. pieces: its one result or, if it was halved, the results of its pieces in order."""

    unit: U
    pieces: Sequence[R | Lost[U]]

    @property
    def halved(self) -> bool:
        """Whether the unit as a whole has no result."""
        return len(self.pieces) > 1 or isinstance(self.pieces[0], Lost)

    @property
    def results(self) -> list[R]:
        return [piece for piece in self.pieces if not isinstance(piece, Lost)]

    @property
    def lost(self) -> list[Lost[U]]:
        return [piece for piece in self.pieces if isinstance(piece, Lost)]


def run_units(
    function: Callable[[U], R],
    units: Iterable[U],
    *,
    workers: int | Workers,
    deadline: Callable[[U], float] | None = None,
    split: Callable[[U], tuple[U, U] | None] | None = None,
    initializer: Callable[[], None] | None = None,
) -> Iterator[Outcome[U, R]]:
    """Yields the outcome of each unit, in the order of completion: files of a unit must get their names from the unit.

    function and initializer must be picklable. Units are taken from the iterable as workers come free.
    deadline: seconds that a unit may take. A unit that exceeds it, or whose worker dies, is split in two by `split`,
    and so on until `split` returns None; then it is lost. Without `split`, the death of a worker is a KorbertError. An
    exception raised by the function stops everything and is raised here.
    """
    workers = Workers(workers) if isinstance(workers, int) else workers
    tasks = _tasks(units)
    waiting = deque(islice(tasks, 1))
    if not waiting:  # no worker need be started
        return
    scheduled: dict[Future[R], _Task[U, R]] = {}
    try:
        with workers.pool(initializer) as pool:
            while waiting or scheduled:
                while waiting and len(scheduled) < workers.count + _AHEAD:
                    task = waiting.popleft()
                    seconds = None if deadline is None else deadline(task.piece)
                    scheduled[pool.run(function, task.piece, seconds)] = task
                    if not waiting:
                        waiting.extend(islice(tasks, 1))
                for future in wait(scheduled, return_when=FIRST_COMPLETED).done:
                    task = scheduled.pop(future)
                    waiting.extend(_finished(future, task, split))
                    done = [piece for piece in task.pieces if not isinstance(piece, _Task)]
                    if len(done) == len(task.pieces):
                        yield Outcome(task.unit, done)
    except BrokenProcessPool as error:
        raise KorbertError(
            "the worker processes ended ({error}): too little memory? Run again to resume, with fewer "
            '{option}; a script of your own needs `if __name__ == "__main__":` around its calls',
            error=error,
            option=argument("workers"),
        ) from error


def run_parts(
    description: str,
    function: Callable[..., dict[str, int]],
    work: Mapping[OutputPart, tuple[Any, ...]],
    *,
    workers: int | Workers,
    initializer: Callable[[], None] | None = None,
) -> Counter[str]:
    """Calls function(part, *arguments) for each part that is not finished. Returns the summed counts of all parts.

    function: finishes the part. work: part -> its arguments. description: shown with the progress. workers and
    initializer are those of `run_units`.
    """
    pending, totals = unfinished(work)
    units = [partial(function, part, *work[part]) for part in pending]
    with track(description, total=len(work), unit="parts", done=len(work) - len(pending)) as advance:
        for outcome in run_units(operator.call, units, workers=workers, initializer=initializer):
            totals.update(outcome.results[0])
            advance(1)
    return totals


@dataclass(frozen=True, eq=False)
class _Task(Generic[U, R]):
    """A unit, or a piece of one. pieces: all of the unit in order, each a result, or a task that has no result yet."""

    unit: U
    piece: U
    pieces: list["R | Lost[U] | _Task[U, R]"]


def _tasks(units: Iterable[U]) -> "Iterator[_Task[U, Any]]":
    for unit in units:
        task = _Task[U, Any](unit, unit, [])
        task.pieces.append(task)
        yield task


def _finished(
    future: "Future[R]", task: _Task[U, R], split: Callable[[U], tuple[U, U] | None] | None
) -> list[_Task[U, R]]:
    """Puts the result of a task in its place among the pieces of its unit. Returns the tasks to run next.

    A task that ended its worker is replaced by its two halves, which are returned; by Lost if it cannot be halved.
    """
    position = task.pieces.index(task)
    error = future.exception()
    if error is None:
        task.pieces[position] = future.result()
        return []
    if isinstance(error, ProcessExpired):
        cause = str(error)
        if error.exitcode:
            cause = Message("the process ended with code {code}", code=error.exitcode)
        task.pieces[position] = Lost(task.piece, "crashed", "its worker process ended")
    elif isinstance(error, TimeoutError) and error.__cause__ is None:  # pebble's own, not the function's
        cause = Message("no result after {seconds:g} seconds", seconds=error.args[-1])
        task.pieces[position] = Lost(task.piece, "timeout", cause)
    else:
        raise error
    if split is None:
        raise KorbertError(
            "a worker died ({why}): too little memory? Run again to resume, with fewer {option}",
            why=cause,
            option=argument("workers"),
        )
    if (halves := split(task.piece)) is None:
        return []
    _logger.warning("a part was halved: %s", cause)
    tasks = [_Task(task.unit, half, task.pieces) for half in halves]
    task.pieces[position : position + 1] = tasks
    return tasks
