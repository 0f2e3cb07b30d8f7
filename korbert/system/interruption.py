"""Ctrl-C and SIGTERM: training saves before it ends, and every command exits with the code of the signal."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Arrived = Callable[[], signal.Signals | None]
"""Returns the first signal that arrived; None: none did."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_IMPORT_POLL_SECONDS = 0.05


class Interrupted(KeyboardInterrupt):
    """A signal ended the command. saved: what was saved because of it, for the user; may be empty."""

    def __init__(self, number: signal.Signals, saved: str = "") -> None:
        super().__init__(saved)
        self.number = number
        self.saved = saved


@contextmanager
def handled_signals(*, raising: bool = False) -> Iterator[Arrived]:
    """Inside, the first Ctrl-C or SIGTERM is only noted. The second has its usual effect.

    raising: signals raise Interrupted instead, after an import in progress: an exception in a module that C++ code is
    importing, as torch does, would abort the process. A library may turn Interrupted into an exception of its own
    (DuckDB does); the yielded function still returns the signal.

    Signals that the process ignores stay ignored (background jobs of a shell). Python delivers signals to the main
    thread: in other threads nothing changes.
    """
    previous_handlers: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        previous_handlers = {
            number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)
        }
    arrived: list[signal.Signals] = []

    def restore() -> None:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        arrived.append(signal.Signals(number))
        if not raising:
            restore()
        elif len(arrived) == 1 and _is_importing(frame) and hasattr(signal, "setitimer"):  # Windows has none
            previous_handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, after_import)
            signal.setitimer(signal.ITIMER_REAL, _IMPORT_POLL_SECONDS)
        else:
            raise Interrupted(arrived[-1])

    def after_import(number: int, frame: FrameType | None) -> None:
        if len(arrived) > 1:  # the second signal has raised already
            return
        if _is_importing(frame):
            signal.setitimer(signal.ITIMER_REAL, _IMPORT_POLL_SECONDS)
        else:
            signal.raise_signal(arrived[0])  # to the current handler, which may only note it

    try:
        for number in previous_handlers:
            signal.signal(number, handle)
        yield lambda: arrived[0] if arrived else None
    finally:
        if getattr(signal, "SIGALRM", None) in previous_handlers:
            signal.setitimer(signal.ITIMER_REAL, 0)
        restore()


def _is_importing(frame: FrameType | None) -> bool:
    while frame and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None
