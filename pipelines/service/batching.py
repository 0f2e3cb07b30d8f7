"""The queue and its two threads: one tokenizes, the other runs batches through the models.

A request is a job of items (texts, or rows of texts) for one operation of one model. The first thread turns each item
into a row of pieces, for which it asks the process of Kiwi (analysis.py). Whenever the model is free, the second
thread gets a batch of the rows that are ready, up to a number of pieces. Operations alternate, and so do the jobs of
an operation: a long list does not hold up a single text. All bookkeeping happens in the event loop.
"""

import asyncio
import logging
import math
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from korbert.messages import Message
from korbert.pipelines.service.limits import Limits
from korbert.pipelines.service.metrics import ServiceMetrics
from korbert.pipelines.service.refusals import Refusal

_logger = logging.getLogger(__name__)

_ITEMS_PER_JOB = 16  # tokenized before the items of the next job
_AT_ONCE = 64  # items, at most, that are tokenized together
_AT_ONCE_CHARS = 8_000  # with about as many characters
_AHEAD = 2  # batches' worth of pieces that are tokenized ahead
_FRAMES = 6  # of a traceback in the log
_LONGEST_PAUSE = 60  # seconds: the largest Retry-After


class TokenizedItem(NamedTuple):
    """A tokenized item: its number of pieces, and the value that the operation's `forward` takes."""

    pieces: int
    value: Any


@dataclass(frozen=True, eq=False)
class Operation:
    """What a model does for one kind of request. Requests of the same operation share batches.

    tokenize: items -> a TokenizedItem each, or a Refusal for one that the model cannot take; runs on the first thread.
    forward: the values of the rows of a batch -> an answer each; runs on the second thread. It may raise a Refusal:
    that of a request whose rows raise it alone. None: the values are the answers.
    """

    tokenize: Callable[[Sequence[Any]], Sequence[TokenizedItem | Refusal]]
    forward: Callable[[Sequence[Any]], Sequence[Any]] | None


class Job:
    """The items of a request in progress.

    future: the answers, one per item and in order, or a Refusal; if it refuses one item, its `param` is that item's
    number.
    """

    def __init__(self, operation: Operation, items: Sequence[object]) -> None:
        self.operation = operation
        self.items = items
        self.future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self.answers: list[Any] = [None] * len(items)
        self.taken = 0  # items that the first thread has taken
        self.left = len(items)  # items without an answer
        self.pieces = 0
        self.since = time.monotonic()


class _Item(NamedTuple):
    """An item of a job. value: from the request; then what the model takes, of `pieces` pieces; then the answer."""

    job: Job
    number: int
    value: Any
    pieces: int = 0


_Function = Callable[[list[Any]], Sequence[Any]]
_Future = Future[Sequence[Any]]


class _Thread:
    """Runs functions in turn, in a daemon thread: an executor's thread would delay the end of the process."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[_Function, list[Any], _Future] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, items, future = call
            if future.set_running_or_notify_cancel():  # else nobody is waiting any more
                try:
                    future.set_result(function(items))
                except Exception as error:
                    future.set_exception(error)
                except BaseException as error:  # a panic of Rust: the event loop would end with it
                    future.set_exception(RuntimeError(type(error).__name__).with_traceback(error.__traceback__))

    def run(self, function: _Function, items: list[Any]) -> "asyncio.Future[Sequence[Any]]":
        """Queues a call of the function with these items; returns a future of its results."""
        future: _Future = Future()
        self._calls.put((function, items, future))
        return asyncio.wrap_future(future)

    def stop(self) -> None:
        """Ends the thread after what it is doing."""
        self._calls.put(None)


class Batcher:
    """Queues jobs and computes answers. Call `submit` and `give_up` in the event loop, between `start` and `stop`.

    waiting: items of all jobs that have no answer yet.
    """

    def __init__(self, limits: Limits) -> None:
        self.waiting = 0
        self.metrics = ServiceMetrics(lambda: self.waiting)
        self._limits = limits
        self._submitted = asyncio.Event()
        self._tokenized = asyncio.Event()
        self._jobs: dict[Operation, deque[Job]] = {}  # with items to tokenize
        self._ready: dict[Operation, deque[_Item]] = {}  # to compute
        self._ready_pieces = 0
        self._pace = 0.0  # seconds per item, a moving average
        self._last = 0.0  # when the last batch was done

    def start(self) -> None:
        self._tokenizer = _Thread("tokenizer")
        self._model = _Thread("model")
        self._tasks = [
            asyncio.create_task(self._tokenize()),
            asyncio.create_task(self._compute()),
        ]

    def stop(self) -> None:
        """Ends both threads; items that still wait are dropped."""
        for task in self._tasks:
            task.cancel()
        self._tokenizer.stop()
        self._model.stop()

    def submit(self, operation: Operation, items: Sequence[object]) -> Job:
        """Queues these items as a job. Refusal 429 if a queue that is not empty has no room for all."""
        if self.waiting and self.waiting + len(items) > self._limits.queue:
            pause = min(max(1, math.ceil(self._pace * self.waiting)), _LONGEST_PAUSE)
            raise Refusal(
                429,
                Message("{waiting:,} texts are waiting: try again in {pause} s", waiting=self.waiting, pause=pause),
                headers={"retry-after": str(pause)},
            )
        job = Job(operation, items)
        self.waiting += len(items)
        self._jobs.setdefault(operation, deque()).append(job)
        self._submitted.set()
        return job

    def give_up(self, job: Job, refusal: Refusal | None = None) -> None:
        """Ends a job, with the refusal if there is one, and frees its places in the queue.

        A batch that is being computed is not interrupted.
        """
        if job.future.done():
            return
        self.waiting -= job.left
        if refusal is None:
            job.future.cancel()
        else:
            job.future.set_exception(refusal)

    async def _tokenize(self) -> None:
        """Turns items into rows of pieces, on the first thread, as long as the service runs."""
        while True:
            items = await self._next_items()
            if not items:
                continue
            operation = items[0].job.operation
            began = time.monotonic()
            rows = await self._run(self._tokenizer, operation.tokenize, items)
            self.metrics.seconds["tokenizing"].observe(time.monotonic() - began)
            ready = []
            for item in rows:
                if isinstance(item.value, Refusal):  # only the route knows what the request calls the item
                    self.give_up(item.job, Refusal(item.value.status_code, item.value.detail, str(item.number)))
                else:
                    ready.append(item._replace(pieces=item.value.pieces, value=item.value.value))
            if operation.forward is None:
                self._deliver(ready)
            elif ready:
                self._ready.setdefault(operation, deque()).extend(ready)
                self._ready_pieces += sum(item.pieces for item in ready)
                self._tokenized.set()

    async def _next_items(self) -> list[_Item]:
        """Waits until jobs have items and few rows are ready; returns items of one operation, some of each job in turn.

        Returns none if all these jobs have ended.
        """
        while not self._jobs or self._ready_pieces >= _AHEAD * self._limits.batch_pieces:
            self._submitted.clear()
            await self._submitted.wait()
        # The operation that has waited longest; if its jobs have more items, it goes to the end of the queue.
        operation, jobs = next(iter(self._jobs.items()))
        del self._jobs[operation]
        items: list[_Item] = []
        chars = 0
        while jobs and len(items) < _AT_ONCE and chars < _AT_ONCE_CHARS:
            job = jobs.popleft()
            if job.future.done():  # given up, or one of its items was refused
                continue
            if not job.taken:
                self.metrics.seconds["queue"].observe(time.monotonic() - job.since)
            end = min(job.taken + _ITEMS_PER_JOB, len(job.items))
            while job.taken < end and chars < _AT_ONCE_CHARS:
                item = job.items[job.taken]
                parts = item if isinstance(item, tuple) else (str(item),)
                chars += sum(len(part) for part in parts if isinstance(part, str))
                items.append(_Item(job, job.taken, item))
                job.taken += 1
            if job.taken < len(job.items):
                jobs.append(job)
        if jobs:
            self._jobs[operation] = jobs
        return items

    async def _compute(self) -> None:
        """Runs batches of rows through the models, on the second thread, and delivers the answers."""
        while True:
            batch = await self._next_batch()
            if not batch:
                continue
            forward = batch[0].job.operation.forward
            assert forward is not None
            began = time.monotonic()
            answers = await self._run(self._model, forward, batch)
            now = time.monotonic()
            self.metrics.seconds["model"].observe(now - began)
            self.metrics.batch_pieces.observe(sum(item.pieces for item in batch))
            # Time between batches without work does not count.
            self._pace += 0.1 * ((now - max(began, self._last)) / len(batch) - self._pace)
            self._last = now
            self._deliver(answers)

    async def _next_batch(self) -> list[_Item]:
        """Waits for rows; returns those of one operation that fit into a batch, without ended jobs: perhaps none."""
        while not self._ready:
            self._tokenized.clear()
            await self._tokenized.wait()
        operation, items = next(iter(self._ready.items()))
        del self._ready[operation]
        batch: list[_Item] = []
        pieces = 0
        while items and (not batch or pieces + items[0].pieces <= self._limits.batch_pieces):
            item = items.popleft()
            self._ready_pieces -= item.pieces
            if not item.job.future.done():
                batch.append(item)
                pieces += item.pieces
        if items:
            self._ready[operation] = items
        self._submitted.set()  # there is room for more rows
        return batch

    async def _run(self, thread: _Thread, function: _Function, items: list[_Item]) -> list[_Item]:
        """Calls a function with the values of items, on a thread; returns the items with the results as their values.

        If it fails, the items of each job run separately, so that no job fails because of another's text; a job that
        fails alone is refused, and its items are left out. Only the traceback is logged, as the text of an error may
        quote a request.
        """
        refusal = Refusal(500, Message("the model failed on this request"))
        try:
            results = await thread.run(function, [item.value for item in items])
            return [item._replace(value=result) for item, result in zip(items, results, strict=True)]
        except Refusal as error:
            refusal = error
        except Exception as error:
            _logger.error("a batch of %d texts failed: %s", len(items), trace(error))
        jobs = dict.fromkeys(item.job for item in items)
        if len(jobs) == 1:
            self.give_up(items[0].job, refusal)
            return []
        job_items = [await self._run(thread, function, [item for item in items if item.job is job]) for job in jobs]
        return list(chain.from_iterable(job_items))

    def _deliver(self, items: Sequence[_Item]) -> None:
        """Stores the answers, which are the values of the items, and completes the jobs whose items all have one."""
        for job, number, answer, pieces in items:
            if job.future.done():
                continue
            job.answers[number] = answer
            job.pieces += pieces
            job.left -= 1
            self.waiting -= 1
            if not job.left:
                job.future.set_result(job.answers)


def trace(error: BaseException) -> str:
    """The type of an error and its innermost frames on one line, without the error's text."""
    frames = traceback.extract_tb(error.__traceback__)[: -_FRAMES - 1 : -1]
    return " <- ".join([type(error).__name__, *(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)])
