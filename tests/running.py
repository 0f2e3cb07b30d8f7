"""Runs one command line, in this process or in one of its own, and says all that can be seen of it from outside."""

import contextlib
import gc
import io
import logging
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

SECONDS = 60  # nothing in the trial is so much work, on however slow a machine


@dataclass(frozen=True)
class Outcome:
    """code: None where the command did not end in time."""

    code: int | None
    out: str
    err: str

    @property
    def message(self) -> str:
        """The last line of standard error."""
        return (self.err.rstrip("\n").splitlines() or [""])[-1]


class _TookTooLong(BaseException):
    pass


class _Stdin(io.BytesIO):
    name = "<stdin>"  # as that of a process is called


def run_here(arguments: Sequence[str], folder: Path, stdin: bytes = b"", seconds: float = SECONDS) -> Outcome:
    """In this process: a hundred times quicker to start. Standard streams are those of a UTF-8 terminal."""
    from korbert.pipelines.cli import run_command

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
    code: int | None
    with _as_in_a_process(folder, out, err, stdin), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            with _at_most(seconds):
                code = run_command(list(arguments))
        except _TookTooLong:
            code = None
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 1
        except Exception as error:  # what leaves run_command ends a process with a trace
            import traceback

            err.write("".join(traceback.format_exception(error)))
            code = 1
    return Outcome(code, *(_written(stream) for stream in (out, err)))


def _written(stream: io.TextIOWrapper) -> str:
    if stream.closed:
        return ""
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "backslashreplace")


@contextmanager
def _as_in_a_process(folder: Path, out: io.TextIOBase, err: io.TextIOBase, stdin: bytes) -> Iterator[None]:
    """Folder, streams, environment, log handlers and threads are given back as they were."""
    root, before = logging.getLogger(), dict(os.environ)
    handlers, level, threads = root.handlers[:], root.level, torch.get_num_threads()
    root.handlers[:] = []  # so that the command sets up its own
    stream = io.TextIOWrapper(_Stdin(stdin), "utf-8")
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        sys.stdin, kept = stream, sys.stdin
        try:
            yield
        finally:
            sys.stdin = kept
            root.handlers[:] = handlers
            root.setLevel(level)
            os.environ.clear()
            os.environ.update(before)
            torch.set_num_threads(threads)


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raises _TookTooLong in the block. pytest-timeout has the same clock: it is given back."""

    def end(number: int, frame: object) -> None:
        raise _TookTooLong

    handler = signal.signal(signal.SIGALRM, end)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, handler)


def run_outside(arguments: Sequence[str], folder: Path, stdin: bytes = b"", seconds: float = 2 * SECONDS) -> Outcome:
    """In a process of its own, which leads a group."""
    with start(arguments, folder) as running:
        try:
            out, err = running.communicate(stdin, timeout=seconds)
            code: int | None = running.returncode
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
        if code is None:
            out, err = running.communicate()
    return Outcome(code, *(data.decode("utf-8", "backslashreplace") for data in (out, err)))


def start(arguments: Sequence[str], folder: Path, **streams: Any) -> "subprocess.Popen[bytes]":
    """The command in a process that leads a group; its standard streams are pipes unless named."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    environment = {name: value for name, value in os.environ.items() if name != "KORBERT_DATA"}
    command = [os.fsencode(word) for word in (sys.executable, "-m", "korbert", *arguments)]
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **streams)


def left_of(group: int, seconds: float) -> str:
    """The processes of a group that are still there after so long; those that only wait to be buried are not."""
    deadline = time.monotonic() + seconds
    while left := [process.name for process in Path("/proc").glob("[0-9]*") if _group_of(process) == group]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return ", ".join(left)


def _group_of(process: Path) -> int | None:
    try:
        state, _, group = (process / "stat").read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return None if state == "Z" else int(group)


def wait_until(
    condition: Callable[[], bool], seconds: float = 120, program: "subprocess.Popen[Any] | None" = None
) -> None:
    """Fails where the condition does not hold in time, or the program that is to bring it about ends before."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert program is None or program.poll() is None, "it ended too early"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def is_alive(process: int) -> bool:
    """Whether it is there, and not only waits to be buried."""
    return _group_of(Path(f"/proc/{process}")) is not None


@contextmanager
def own_data() -> Iterator[None]:
    """Inside, the recipe's folder is the data folder, whatever the tests of real data are given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KORBERT_DATA", raising=False)
        yield


class _Here:
    """A pool of workers that is this process: what they do is the same, what starting them costs is saved."""

    def run(self, function: Callable[[Any], Any], unit: Any, seconds: float | None) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(function(unit))
        except Exception as error:
            done.set_exception(error)
        return done


@contextmanager
def units_here(most: int = 999) -> Iterator[None]:
    """Inside, no pool of at most so many workers is started."""
    from korbert.corpus.execution.processes import processes

    @contextmanager
    def pool(workers: int, initializer: Callable[[], None] | None) -> Iterator[Any]:
        if workers > most:
            with processes(workers, initializer) as real:
                yield real
            return
        try:
            if initializer is not None:
                initializer()
            yield _Here()
        finally:  # what analyze's initializer has set
            gc.unfreeze()
            gc.enable()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("korbert.corpus.execution.processes.processes", pool)
        yield


@contextmanager
def quick() -> Iterator[None]:
    """Inside, commands of this process start no workers and do not wait for the disk."""
    with units_here(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield
