"""Makers of batches for worker processes, which import them by name; and a program that is killed while it has some."""

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from korbert.errors import CorpusError
from korbert.training.feeding import prefetch_batches

Made = list[dict[str, Any]]


def numbered(step: int) -> Made:
    """Who made it, and what makers may not disturb."""
    threads, handlers = torch.get_num_threads(), {signal.SIGINT, signal.SIGTERM}
    blocked = handlers <= signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return [{"step": torch.tensor(step), "pid": os.getpid(), "threads": threads, "blocked": blocked}]


def failing(at: int, step: int) -> Made:
    if step == at:
        raise ValueError("a", 1)
    return numbered(step)


def dying(at: int, step: int) -> Made:
    if step == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return numbered(step)


def aborting(step: int) -> Made:
    atexit.register(os.abort)
    return numbered(step)


class Unpicklable:
    """Only in workers: what opens a file that is gone."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _gone, ("part-7.arrow: gone",)

    def __call__(self, step: int) -> Made:
        return numbered(step)


def _gone(text: str) -> None:
    raise CorpusError(text)


def slow(seconds: float, step: int) -> Made:
    time.sleep(seconds)
    return numbered(step)


def main() -> None:
    """`python makers.py FOLDER`: notes the processes of two workers in FOLDER/pids, then waits to be killed."""
    with prefetch_batches(partial(slow, 0.01), range(10**6), workers=2) as steps:
        pids = [next(steps)[1][0]["pid"] for _ in range(2)]
        partial_file = Path(sys.argv[1]) / "pids.partial"
        partial_file.write_text(" ".join(map(str, pids)))
        partial_file.rename(Path(sys.argv[1]) / "pids")
        for _ in steps:
            pass


if __name__ == "__main__":
    main()
