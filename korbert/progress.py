"""One way to show that something long is under way: a rich bar on a terminal, a line now and then elsewhere."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["track"]

_SECONDS_BETWEEN_LINES = 15.0  # where standard error is no terminal (a log file)

_logger = logging.getLogger(__name__)


@contextmanager
def track(description: str, total: int | None, unit: str = "") -> Iterator[Callable[[int], None]]:
    """Yields `advance(n)`. The bar goes to standard error, so that standard output stays clean for data.

    total: how many steps there will be; None where nobody knows.
    """
    if sys.stderr.isatty():
        with _bar(description, total, unit) as advance:
            yield advance
    else:
        yield _lines(description, total, unit)


@contextmanager
def _bar(description: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
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
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        task = progress.add_task(description, total=total)
        yield lambda count: progress.advance(task, count)


def _lines(description: str, total: int | None, unit: str) -> Callable[[int], None]:
    done = 0
    last = time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, last
        done += count
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            _logger.info("%s: %s%s %s", description, f"{done:,}", "" if total is None else f" of {total:,}", unit)

    return advance
