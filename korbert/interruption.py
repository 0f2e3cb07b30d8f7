"""Ctrl-C and SIGTERM: training saves before it ends, and every command leaves with the code of its signal."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

__all__ = ["Arrived", "Interrupted", "noted_signals", "raised_signals"]

Arrived = Callable[[], signal.Signals | None]
"""Tells the first signal that has arrived; None: there was none."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal ended this. saved: what was saved because of it, in words; it may be empty."""

    def __init__(self, number: signal.Signals, saved: str = "") -> None:
        super().__init__(saved)
        self.number, self.saved = number, saved


def noted_signals() -> AbstractContextManager[Arrived]:
    """Inside, the first Ctrl-C or SIGTERM is noted and changes nothing. The second does what either did before.

    A signal that the process ignores stays ignored (a shell's job in the background). Python hands signals to the main
    thread alone: in another thread nothing changes.
    """
    return _handled(raising=False)


def raised_signals() -> AbstractContextManager[Arrived]:
    """Inside, Ctrl-C and SIGTERM raise Interrupted. Otherwise as noted_signals.

    A library may turn the exception into one of its own (DuckDB does): what was yielded still tells of the signal.
    """
    return _handled(raising=True)


@contextmanager
def _handled(*, raising: bool) -> Iterator[Arrived]:
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in _SIGNALS}
        before = {number: handler for number, handler in found.items() if handler not in (None, signal.SIG_IGN)}
    arrived: list[signal.Signals] = []

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        arrived.append(signal.Signals(number))
        if raising:
            raise Interrupted(arrived[-1])
        restore()

    try:
        for number in before:
            signal.signal(number, handle)
        yield lambda: arrived[0] if arrived else None
    finally:
        restore()
