"""Makes the micro-batches of the next steps while the device computes this one, in a thread or in processes.

A step's number alone determines its worker, and a batch is a pure function of it, so the order of steps does not depend
on the number of workers.
"""

import mmap
import multiprocessing
import os
import pickle
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import reduction
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from korbert.errors import KorbertError
from korbert.messages import Message, argument
from korbert.system import die_with_parent, starting_processes
from korbert.training.devices import Batch, pin_memory

_ALIGNMENT = 64  # bytes

StepBatches = Callable[[int], Sequence[Batch]]
"""Update (0-based) -> its micro-batches, on the processor.

A pure function that does not use PyTorch's global generator: a thread calls it for the next update while this one
runs, or `row_workers` processes call it for the next ones, for which it must be picklable. The trained bytes do not
depend on their number.

Under torchrun: this process's part of the step (`current_world`), at least one micro-batch, with weights as
shares of the whole step. Keys that end in `_count` are numbers of the part, added up before the loss sees them.
"""


@contextmanager
def prefetch_batches(
    batches: StepBatches, steps: range, *, workers: int = 0, pin: bool = False
) -> Iterator[Iterator[tuple[int, Sequence[Batch], float]]]:
    """Yields (step, its micro-batches, seconds waited for them) in turn, made ahead of need.

    workers: processes that make two steps ahead each; 0: a thread makes the next step. Processes need a `batches` that
    can be pickled, with tensors and facts as in Batch but no arrays; its own arrays are shared by all, read-only. pin:
    see `pin_memory`. KorbertError when a process has died. Errors of `batches` come out here.
    """

    def timed(step_batches: Iterator[Sequence[Batch]]) -> Iterator[tuple[int, Sequence[Batch], float]]:
        for step in steps:
            began = time.perf_counter()
            micro_batches = next(step_batches)
            yield step, micro_batches, time.perf_counter() - began

    workers = min(workers, len(steps))
    with _by_processes(batches, steps, workers, pin) if workers else _by_thread(batches, steps, pin) as step_batches:
        yield timed(step_batches)


@contextmanager
def _by_thread(batches: StepBatches, steps: range, pin: bool) -> Iterator[Iterator[Sequence[Batch]]]:
    def make(step: int) -> Sequence[Batch]:
        return [pin_memory(batch) for batch in batches(step)] if pin else batches(step)

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as thread:

        def walk() -> Iterator[Sequence[Batch]]:
            following = thread.submit(make, steps[0])
            for step in steps:
                current = following.result()
                if step + 1 in steps:
                    following = thread.submit(make, step + 1)
                yield current

        yield walk()


@contextmanager
def _by_processes(batches: StepBatches, steps: range, count: int, pin: bool) -> Iterator[Iterator[Sequence[Batch]]]:
    context = multiprocessing.get_context("spawn")
    workers: list[tuple[SpawnProcess, Connection]] = []

    def walk() -> Iterator[Sequence[Batch]]:
        for number in range(len(steps)):
            micro_batches = _receive(*workers[number % count])
            yield [pin_memory(batch) for batch in micro_batches] if pin else micro_batches

    try:
        # Ctrl-C of a terminal and SIGTERM of a scheduler go to all processes: the parent answers.
        with tempfile.TemporaryFile() as file, starting_processes(signal.SIGINT, signal.SIGTERM):
            shared = _Shared(batches, file)
            for number in range(count):
                pipe, end = context.Pipe(duplex=False)
                arguments = shared, steps[number::count], end, os.getpid()
                workers.append((context.Process(target=_make, args=arguments, daemon=True), pipe))
                workers[-1][0].start()
                end.close()  # the worker's alone, so that its death closes the pipe
        yield walk()
    finally:
        for process, pipe in workers:
            if process.pid is not None:  # an interrupted start
                process.kill()
                process.join()
            process.close()
            pipe.close()


def _receive(process: SpawnProcess, pipe: Connection) -> Sequence[Batch]:
    """The next step of a worker. Raises the error of `batches`, and KorbertError if the worker has died."""
    try:
        received = pipe.recv()
    except (EOFError, OSError) as error:
        process.join()
        code = process.exitcode or 0
        cause = Message("ended with code {code}", code=code)
        if code < 0:
            cause = Message("was killed ({signal})", signal=signal.Signals(-code).name)
        raise KorbertError(
            "a process that makes rows {how}: if nobody did that, memory ran out, and fewer {option} need "
            "less; the same command resumes",
            how=cause,
            option=argument("row_workers"),
        ) from error
    if isinstance(received, Exception):
        raise received
    return [
        {name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in batch.items()}
        for batch in received
    ]


def _make(shared: "_Shared", steps: range, pipe: Connection, parent: int) -> None:
    """Makes these steps, in a worker, each while the one before is being sent: two are ready when the parent is late.

    Micro-batches travel as arrays: tensors would take a file descriptor each, of which there are often 1,024, and
    shared memory, of which a container often has 64 MB.
    """
    die_with_parent(parent)
    torch.set_num_threads(1)
    batches: StepBatches | None = None
    sent: Future[None] | None = None
    with ThreadPoolExecutor(max_workers=1) as sender:
        for step in steps:
            payload: list[dict[str, Any]] | Exception
            try:
                batches = batches or shared.load()
                payload = [
                    {name: value.numpy() if isinstance(value, Tensor) else value for name, value in batch.items()}
                    for batch in batches(step)
                ]
            except Exception as error:
                # An error that takes more than a text could not be read from the pipe.
                is_ours = isinstance(error, KorbertError | OSError)
                payload = error if is_ours else RuntimeError(f"{type(error).__name__}: {error}")
                payload.add_note(f"In a process that makes rows: {traceback.format_exc()}")
            if sent:
                sent.result()
            sent = sender.submit(pipe.send, payload)


class _Shared:
    """`batches` as workers get it: its arrays travel in a file without a name, which all of them map.

    Otherwise each worker would hold the index of the corpus: 24 bytes a sentence. The kernel removes the file with the
    last process, however that ends.
    """

    def __init__(self, batches: StepBatches, file: IO[bytes]) -> None:
        """file: empty; workers take it along when they start."""
        buffers: list[pickle.PickleBuffer] = []
        self._pickled = pickle.dumps(batches, protocol=5, buffer_callback=buffers.append)
        self._file = file
        self._spans: list[tuple[int, int]] = []  # of the arrays in the file, in bytes
        for buffer in buffers:
            content = buffer.raw()
            start = file.seek(-(-file.tell() // _ALIGNMENT) * _ALIGNMENT)
            self._spans.append((start, start + content.nbytes))
            file.write(content)
        file.write(b"\0")  # an empty file cannot be mapped
        file.flush()

    def __getstate__(self) -> dict[str, object]:
        return {"_pickled": self._pickled, "_spans": self._spans, "_file": reduction.DupFd(self._file.fileno())}

    def load(self) -> StepBatches:
        """`batches`, in a worker."""
        file: Any = self._file  # as __getstate__ sends it
        content = memoryview(mmap.mmap(file.detach(), 0, access=mmap.ACCESS_READ))
        return pickle.loads(self._pickled, buffers=[content[start:end] for start, end in self._spans])
