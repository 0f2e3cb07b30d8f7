"""One way to show that something long is under way: a rich bar on a terminal, a line now and then elsewhere."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Advance", "track", "untracked"]

_SECONDS_BETWEEN_LINES = 15.0  # where standard error is no terminal (a log file)

_logger = logging.getLogger(__name__)


class Advance(Protocol):
    """Says that `count` more are done. figures: what else is to be shown; it stands until there are others."""

    def __call__(self, count: int, figures: str = "") -> None: ...


def untracked(count: int, figures: str = "") -> None:
    """Shows nothing."""


@contextmanager
def track(description: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
    """Yields `advance(n)`. The bar goes to standard error, so that standard output stays clean for data.

    total: how many steps there will be; None where nobody knows. done: how many an earlier run has done.
    """
    if sys.stderr.isatty():
        with _bar(description, total, unit, done) as advance:
            yield advance
    else:
        yield _lines(description, total, unit, done)


@contextmanager
def _bar(description: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        task = progress.add_task(description, total=total, completed=done, figures="")

        def advance(count: int, figures: str = "") -> None:
            progress.advance(task, count)
            if figures:
                progress.update(task, figures=figures)

        yield advance


def _lines(description: str, total: int | None, unit: str, done: int) -> Advance:
    first, started = done, time.monotonic()
    last, shown = started, ""

    def advance(count: int, figures: str = "") -> None:
        nonlocal done, last, shown
        done += count
        shown = figures or shown
        now = time.monotonic()
        if now - last < _SECONDS_BETWEEN_LINES:
            return
        last = now
        parts = [f"{done:,}{'' if total is None else f' of {total:,}'} {unit}".rstrip(), shown]
        if total is not None and done > first:
            parts.append(_left((now - started) / (done - first) * (total - done)))
        _logger.info("%s: %s", description, ", ".join(filter(None, parts)))

    return advance


def _left(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h left"
