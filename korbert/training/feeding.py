"""Makes the micro-batches of the next steps while the device computes this one, in a thread or in processes.

Processes are workers of PyTorch's DataLoader. A step's number alone determines its worker, and a batch
is a pure function of it, so the order of steps does not depend on the number of workers.
"""

import mmap
import multiprocessing
import os
import pickle
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import reduction
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from korbert.errors import KorbertError
from korbert.processes import die_with, starting
from korbert.training.devices import Batch, pinned

_STEPS_AHEAD = 2  # of each process
_ALIGNMENT = 64  # bytes

Made = list[dict[str, Any]]
"""The micro-batches of a step with arrays in place of tensors."""


@contextmanager
def fed(
    batches: Callable[[int], Sequence[Batch]], steps: range, *, workers: int = 0, pin: bool = False
) -> Iterator[Iterator[tuple[int, Sequence[Batch], float]]]:
    """Yields (step, its micro-batches, seconds waited for them) in turn, made ahead of need.

    workers: processes that make two steps ahead each; 0: a thread makes the next step. Processes need a `batches` that
    can be pickled, with tensors and facts as in Batch but no arrays; its own arrays are shared by all, read-only.
    pin: see `pinned`. KorbertError when a process dies, also while the block works. Errors of `batches` come out here.
    """

    def timed(made: Iterator[Sequence[Batch]]) -> Iterator[tuple[int, Sequence[Batch], float]]:
        for step in steps:
            asked = time.perf_counter()
            micro_batches = next(made)
            yield step, micro_batches, time.perf_counter() - asked

    workers = min(workers, len(steps))
    with _by_processes(batches, steps, workers, pin) if workers else _by_thread(batches, steps, pin) as made:
        yield timed(made)


@contextmanager
def _by_thread(
    batches: Callable[[int], Sequence[Batch]], steps: range, pin: bool
) -> Iterator[Iterator[Sequence[Batch]]]:
    def make(step: int) -> Sequence[Batch]:
        return [pinned(batch) for batch in batches(step)] if pin else batches(step)

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
def _by_processes(
    batches: Callable[[int], Sequence[Batch]], steps: range, workers: int, pin: bool
) -> Iterator[Iterator[Sequence[Batch]]]:
    before, own = set(multiprocessing.active_children()), set[Any]()
    made: Iterator[Made | Exception] | None = None
    try:
        # Ctrl-C of a terminal and SIGTERM of a scheduler go to all processes: the parent answers.
        with tempfile.TemporaryFile() as file, starting(signal.SIGINT, signal.SIGTERM):
            made = _started(_Steps(batches, file), steps, workers)
        own = set(multiprocessing.active_children()) - before
        yield (_restored(step, pin) for step in made)
    except RuntimeError as error:  # DataLoader raises it in the main thread, whatever that does
        codes = [process.exitcode for process in own if process.exitcode is not None]
        if not codes:
            raise
        how = f"was killed ({signal.Signals(-codes[0]).name})" if codes[0] < 0 else f"ended with code {codes[0]}"
        raise KorbertError(
            f"a process that makes rows {how}: if nobody did that, memory ran out, and fewer --row-workers need less; "
            "the same command resumes"
        ) from error
    finally:
        try:
            # A worker that aborts while it exits (a library may, as it unloads) has made all that was asked of it.
            with suppress(RuntimeError):
                if isinstance(made, _MultiProcessingDataLoaderIter):
                    made._shutdown_workers()
        finally:  # also workers of an interrupted start, and those that hang
            for process in set(multiprocessing.active_children()) - before:
                process.kill()
                process.join()


def _started(dataset: "_Steps", steps: range, workers: int) -> Iterator[Made | Exception]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # more workers than cores: the caller knows
        loader = DataLoader(
            dataset,
            batch_size=None,
            sampler=steps,
            num_workers=workers,
            prefetch_factor=_STEPS_AHEAD,
            collate_fn=_unchanged,
            worker_init_fn=partial(_start_worker, os.getpid()),
            multiprocessing_context="spawn",
            generator=torch.Generator(),  # not the global one
        )
        return iter(loader)


def _start_worker(parent: int, worker: int) -> None:
    """Makes a worker exit with its parent. worker: its number, from DataLoader."""
    die_with(parent)


def _unchanged(made: Any) -> Any:
    return made


def _restored(made: Made | Exception, pin: bool) -> Sequence[Batch]:
    if isinstance(made, Exception):
        raise made
    restored = [
        {name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in batch.items()}
        for batch in made
    ]
    return [pinned(batch) for batch in restored] if pin else restored


class _Steps(Dataset[Made | Exception]):
    """`batches` as DataLoader takes it. Its arrays travel in a file without a name, which workers map.

    Otherwise each worker would hold the index of the corpus: 24 bytes a sentence. The kernel removes the file with the
    last process, however that ends. Micro-batches travel as arrays through a pipe: tensors would take a file descriptor
    each, of which there are often 1,024, and shared memory, of which a container often has 64 MB.
    """

    def __init__(self, batches: Callable[[int], Sequence[Batch]], file: IO[bytes]) -> None:
        """file: empty; workers take it along when they start."""
        buffers: list[pickle.PickleBuffer] = []
        self._pickled = pickle.dumps(batches, protocol=5, buffer_callback=buffers.append)
        self._file = file
        self._places: list[tuple[int, int]] = []
        self._batches: Callable[[int], Sequence[Batch]] | None = None
        for buffer in buffers:
            content = buffer.raw()
            start = file.seek(-(-file.tell() // _ALIGNMENT) * _ALIGNMENT)
            self._places.append((start, start + content.nbytes))
            file.write(content)
        file.write(b"\0")  # an empty file cannot be mapped
        file.flush()

    def __getstate__(self) -> dict[str, Any]:
        return {"pickled": self._pickled, "places": self._places, "file": reduction.DupFd(self._file.fileno())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._pickled, self._places, self._batches = state["pickled"], state["places"], None
        self._file = os.fdopen(state["file"].detach(), "rb")

    def __getitem__(self, step: int) -> Made | Exception:
        try:
            if self._batches is None:
                content = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
                self._batches = pickle.loads(self._pickled, buffers=[content[start:end] for start, end in self._places])
            return [
                {name: value.numpy() if isinstance(value, Tensor) else value for name, value in batch.items()}
                for batch in self._batches(step)
            ]
        except Exception as error:
            # DataLoader would make the trace a part of the text, and fail at errors that take more than a text.
            known = isinstance(error, KorbertError | OSError)
            sent: Exception = error if known else RuntimeError(f"{type(error).__name__}: {error}")
            sent.add_note(f"In a process that makes rows: {traceback.format_exc()}")
            return sent
