"""Worker processes that are shielded from terminal signals and die with their parent."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from korbert.system.interruption import handled_signals

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_replacing = threading.Lock()


class _Process(SpawnProcess):
    """A process that does not run the script of the user again, as a spawned one does to find what the script defines.

    All that is sent to it is ours: a script that calls `korbert.run` needs no `if __name__ == "__main__"`.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _replacing:
            script = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process_obj)
            finally:
                sys.modules["__main__"] = script


class Spawning(SpawnContext):
    """The multiprocessing context of a pool of workers. It keeps the locks that it made.

    pebble drops the locks of a pool before it ends the workers, which unlinks them: a starting worker would fail.
    """

    Process = _Process

    def __init__(self) -> None:
        super().__init__()
        self._locks: list[Any] = []

    def RLock(self) -> Any:
        self._locks.append(super().RLock())
        return self._locks[-1]


@contextmanager
def starting_processes(*blocked: signal.Signals) -> Iterator[None]:
    """Start processes inside this context. Signals to this process take effect after it; the children block `blocked`.

    An exception between the start of a worker and the data it is sent would leave a worker that ends with a traceback.
    Any thread may receive the signal that raises the exception, so blocking the signal in this thread is not enough:
    signals are only noted. Signals that this thread blocks stay blocked in its children.
    """
    with handled_signals() as arrived:
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            yield
        else:
            resource_tracker.ensure_running()  # starting it below would unblock the signals
            previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
            try:
                yield
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
    if (number := arrived()) is not None:
        signal.raise_signal(number)


def die_with_parent(parent: int) -> None:
    """Ends this process when its parent dies, by a signal of the kernel (Linux), or a thread. parent: its process id.

    The kernel sends the signal when the thread that started this process ends: that thread has to outlive all work.
    """
    library: Any = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    if hasattr(library, "prctl"):
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_exit_with_parent, args=(multiprocessing.parent_process(),), daemon=True).start()
    if os.getppid() != parent:  # it died before the request
        os._exit(1)


def _exit_with_parent(parent: Any) -> None:
    parent.join()
    os._exit(1)
