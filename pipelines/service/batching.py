"""The queue and its two threads: one tokenizes, the other runs batches through the models.

A request is a job of items (texts, or rows of texts) for one operation of one model. The first thread turns each item
into a row of pieces, for which it asks the process of Kiwi (analysis.py). Whenever the model is free, the second
thread forms a batch of the rows that are ready, up to a number of pieces. Operations take turns, and so do the jobs of
an operation: a long list does not hold up a single text.
"""

import asyncio
import contextlib
import logging
import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipelines.service.limits import Limits
from pipelines.service.metrics import Metrics
from pipelines.service.refusals import Refusal

__all__ = ["Batcher", "Job", "Operation", "Row", "trace"]

_logger = logging.getLogger(__name__)

_TURN = 16  # items of one job that are tokenized before those of the next one
_AT_ONCE, _AT_ONCE_CHARS = 64, 8_000  # limits of items, and of characters, that are tokenized together
_AHEAD = 2  # batches' worth of pieces that are tokenized ahead
_FRAMES = 6  # of a traceback in the log
_LONGEST_PAUSE = 60  # seconds: the largest Retry-After


class Row(NamedTuple):
    """A tokenized item: its number of pieces, and the value that the operation's `forward` takes."""

    pieces: int
    value: Any


@dataclass(frozen=True, eq=False)
class Operation:
    """What a model does for one kind of request. Requests of the same operation share batches.

    tokenize: items -> a Row each, or a Refusal for an item that the model cannot take; runs on the first thread.
    forward: the values of the rows of a batch -> an answer each; runs on the second thread. None: the values are the
    answers.
    """

    tokenize: Callable[[Sequence[Any]], Sequence[Row | Refusal]]
    forward: Callable[[Sequence[Any]], Sequence[Any]] | None


class Job:
    """The items of a request in progress.

    future: the answers, one per item and in order, or a Refusal; that of an item has the item's number as `param`.
    """

    def __init__(self, operation: Operation, items: Sequence[Any], chars: Sequence[int]) -> None:
        self.operation, self.items, self.chars = operation, items, chars
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[Any]] = self.loop.create_future()
        self.answers: list[Any] = [None] * len(items)
        self.taken = 0  # items that the first thread has taken
        self.left = len(items)  # without an answer
        self.over = False  # answered, failed or cancelled
        self.pieces = 0
        self.since = time.monotonic()


class _Place(NamedTuple):
    job: Job
    number: int  # of the item
    row: Row = Row(0, None)


class Batcher:
    """`submit` and `give_up` are called in the event loop, after `start` and before `stop`.

    waiting: items of all jobs that have no answer yet.
    """

    def __init__(self, limits: Limits) -> None:
        self.waiting = 0
        self.metrics = Metrics(lambda: self.waiting)
        self._limits = limits
        self._changed = threading.Condition()
        self._jobs: dict[Operation, deque[Job]] = {}  # with items to tokenize
        self._ready: dict[Operation, deque[_Place]] = {}  # to compute
        self._ready_pieces = 0
        self._ended = False
        self._pace = 0.0  # seconds per item, a moving average
        self._last = 0.0  # when the last batch was done

    def start(self) -> None:
        for name, work in (("tokenizer", self._tokenize), ("model", self._compute)):
            threading.Thread(target=work, name=name, daemon=True).start()

    def stop(self) -> None:
        """Ends both threads; items that still wait are dropped."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def submit(self, operation: Operation, items: Sequence[Any]) -> Job:
        """A job for these items. Refusal 429 if the queue has no room for all."""
        with self._changed:
            if self.waiting and self.waiting + len(items) > self._limits.queue:
                pause = min(max(1, math.ceil(self._pace * self.waiting)), _LONGEST_PAUSE)
                raise Refusal(
                    429, f"{self.waiting:,} texts are waiting: try again in {pause} s", None, retry_after=pause
                )
            job = Job(operation, items, list(map(_chars, items)))
            self.waiting += len(items)
            self._jobs.setdefault(operation, deque()).append(job)
            self._changed.notify_all()
        return job

    def give_up(self, job: Job) -> None:
        """Frees the queue places of an abandoned job. A batch that is being computed is not interrupted."""
        with self._changed:
            self._end(job)
        job.future.cancel()

    def _end(self, job: Job) -> None:
        if not job.over:
            job.over = True
            self.waiting -= job.left

    def _tokenize(self) -> None:
        """The first thread."""
        while (taken := self._next_items()) is not None:
            if taken:
                self._run(self._tokenize_batch, taken)

    def _tokenize_batch(self, taken: Sequence[_Place]) -> None:
        operation, began = taken[0].job.operation, time.monotonic()
        rows = operation.tokenize([place.job.items[place.number] for place in taken])
        places = [_Place(*place[:2], row) for place, row in zip(taken, rows, strict=True) if isinstance(row, Row)]
        refused = [(place, row) for place, row in zip(taken, rows, strict=True) if isinstance(row, Refusal)]
        self.metrics.tokenizing_seconds.observe(time.monotonic() - began)
        for place, refusal in refused:  # only the route knows what the request calls the item
            numbered = Refusal(refusal.status_code, refusal.detail, str(place.number))
            self._settle([(place.job, numbered)])
        if operation.forward is None:
            self._deliver(places, [place.row.value for place in places])
            return
        with self._changed:
            self._ready.setdefault(operation, deque()).extend(places)
            self._ready_pieces += sum(place.row.pieces for place in places)
            self._changed.notify_all()

    def _next_items(self) -> list[_Place] | None:
        """The next items of one operation, some of each job in turn; may be empty. None: the thread must end."""
        with self._changed:
            while not (self._ended or (self._jobs and self._ready_pieces < _AHEAD * self._limits.batch_pieces)):
                self._changed.wait()
            if self._ended:
                return None
            operation, jobs = next(iter(self._jobs.items()))
            del self._jobs[operation]
            taken: list[_Place] = []
            chars = 0
            while jobs and len(taken) < _AT_ONCE and chars < _AT_ONCE_CHARS:
                job = jobs.popleft()
                if not job.taken and not job.over:
                    self.metrics.queue_seconds.observe(time.monotonic() - job.since)
                end = job.taken if job.over else min(job.taken + _TURN, len(job.items))
                while job.taken < end and chars < _AT_ONCE_CHARS:
                    taken.append(_Place(job, job.taken))
                    chars += job.chars[job.taken]
                    job.taken += 1
                if job.taken < len(job.items) and not job.over:
                    jobs.append(job)
            if jobs:
                self._jobs[operation] = jobs
            return taken

    def _compute(self) -> None:
        """The second thread."""
        while (batch := self._next_batch()) is not None:
            if batch:
                self._run(self._compute_batch, batch)

    def _compute_batch(self, batch: Sequence[_Place]) -> None:
        operation, began = batch[0].job.operation, time.monotonic()
        assert operation.forward is not None
        answers = operation.forward([place.row.value for place in batch])
        if len(answers) != len(batch):
            raise ValueError(f"{len(answers)} answers for {len(batch)} rows")
        now = time.monotonic()
        self.metrics.model_seconds.observe(now - began)
        self.metrics.batch_pieces.observe(sum(place.row.pieces for place in batch))
        self._pace += 0.1 * ((now - max(began, self._last)) / len(batch) - self._pace)
        self._last = now
        self._deliver(batch, answers)

    def _next_batch(self) -> list[_Place] | None:
        """Rows of one operation, as many as fit into a batch, except those of ended jobs. None: the thread must end."""
        with self._changed:
            while not (self._ended or self._ready):
                self._changed.wait()
            if self._ended:
                return None
            operation, places = next(iter(self._ready.items()))
            del self._ready[operation]
            batch: list[_Place] = []
            pieces = 0
            while places and (not batch or pieces + places[0].row.pieces <= self._limits.batch_pieces):
                place = places.popleft()
                self._ready_pieces -= place.row.pieces
                if not place.job.over:
                    batch.append(place)
                    pieces += place.row.pieces
            if places:
                self._ready[operation] = places
            self._changed.notify_all()
            return batch

    def _deliver(self, places: Sequence[_Place], answers: Sequence[Any]) -> None:
        """Stores the answers, and completes the jobs whose items all have one."""
        complete: list[tuple[Job, list[Any]]] = []
        with self._changed:
            for (job, number, row), answer in zip(places, answers, strict=True):
                if job.over:
                    continue
                job.answers[number] = answer
                job.pieces += row.pieces
                job.left -= 1
                self.waiting -= 1
                if not job.left:
                    job.over = True
                    complete.append((job, job.answers))
        self._settle(complete)

    def _run(self, work: Callable[[Sequence[_Place]], None], places: Sequence[_Place]) -> None:
        """Runs a batch. If it fails, its jobs run separately, so that none fails because of another's text.

        Only the traceback is logged, as the text of an error may quote a request.
        """
        try:
            work(places)
        except Exception as error:
            _logger.error("a batch of %d texts failed: %s", len(places), trace(error))
            jobs = dict.fromkeys(place.job for place in places)
            if len(jobs) == 1:
                self._settle([(job, Refusal(500, "the model failed on this request")) for job in jobs])
                return
            for job in jobs:
                self._run(work, [place for place in places if place.job is job])

    def _settle(self, ended: Sequence[tuple[Job, list[Any] | Refusal]]) -> None:
        """Tells the event loop how jobs ended."""
        with self._changed:
            for job, _ in ended:
                self._end(job)
        if not ended:
            return

        def tell() -> None:
            for job, result in ended:
                if job.future.done():
                    continue
                if isinstance(result, Refusal):
                    job.future.set_exception(result)
                else:
                    job.future.set_result(result)

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is waiting
            ended[0][0].loop.call_soon_threadsafe(tell)


def _chars(item: Any) -> int:
    if isinstance(item, tuple):
        return sum(len(part) for part in item if isinstance(part, str))
    return len(item if isinstance(item, str) else str(item))


def trace(error: BaseException) -> str:
    """Type and traceback of an error on one line, without its text."""
    frames = traceback.extract_tb(error.__traceback__)[: -_FRAMES - 1 : -1]
    return " <- ".join([type(error).__name__, *(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)])
