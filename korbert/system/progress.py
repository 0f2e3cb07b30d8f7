"""Progress of long work: a bar on a terminal and in a notebook, otherwise an occasional line."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from korbert import notebook
from korbert.system.ranks import is_secondary_rank

_SECONDS_BETWEEN_LINES = 15.0  # if standard error is not a terminal (a log file)
_SECONDS_BETWEEN_UNLOGGED = 60.0  # in a program that shows no log, on standard error
_SECONDS_BETWEEN_MOVES = 0.2  # of a bar in a notebook, which keeps every message until it is drawn

_logger = logging.getLogger(__name__)


class Advance(Protocol):
    """Reports `count` more units of work as done. figures: text shown beside; "": the last one stays."""

    def __call__(self, count: int, figures: str = "") -> None: ...


def untracked(count: int, figures: str = "") -> None:
    """An Advance that shows nothing."""


@contextmanager
def track(description: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
    """Yields `advance(n)`. The bar is on standard error, or below the cell of a notebook; standard output is for data.
    Of many processes one shows it.

    total: units of work; None: unknown. done: units that an earlier run has done.
    """
    if is_secondary_rank():
        yield untracked
        return
    display = _cell if notebook.is_notebook() else _bar if sys.stderr.isatty() else _lines
    with display(description, total, unit, done) as advance:
        yield advance


@contextmanager
def _bar(description: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    counts = (BarColumn(), MofNCompleteColumn(), unit)
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    columns = ("{task.description:<12}", *counts, "{task.fields[figures]}", *times)
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        task = progress.add_task(description, total=total, completed=done, figures="")

        def advance(count: int, figures: str = "") -> None:
            progress.advance(task, count)
            if figures:
                progress.update(task, figures=figures)

        yield advance


@contextmanager
def _cell(description: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
    from tqdm.auto import tqdm

    with tqdm(desc=description, total=total, initial=done, unit=f" {unit}", mininterval=_SECONDS_BETWEEN_MOVES) as bar:

        def advance(count: int, figures: str = "") -> None:
            if figures:
                bar.set_postfix_str(figures, refresh=False)
            bar.update(count)

        yield advance


@contextmanager
def _lines(description: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
    first = done
    is_logged = _logger.isEnabledFor(logging.INFO)
    between = _SECONDS_BETWEEN_LINES if is_logged else _SECONDS_BETWEEN_UNLOGGED
    started = time.monotonic()
    last = started
    shown = ""

    def advance(count: int, figures: str = "") -> None:
        nonlocal done, last, shown
        done += count
        shown = figures or shown
        now = time.monotonic()
        if now - last < between:
            return
        last = now
        counted = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        parts = [f"{description}: {counted} {unit}".rstrip(), shown]
        if total is not None and done > first:
            seconds = (now - started) / (done - first) * (total - done)
            minutes = f"{seconds / 60:.0f} min left" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h left"
            parts.append(f"{seconds:.0f} s left" if seconds < 90 else minutes)
        line = ", ".join(filter(None, parts))
        if is_logged:
            _logger.info("%s", line)
        else:
            print(line, file=sys.stderr, flush=True)

    yield advance
