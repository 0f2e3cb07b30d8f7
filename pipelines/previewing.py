"""What `korbert clean --preview` prints and draws."""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from rich.markup import escape

from corpus.preview import Preview, Shown

__all__ = ["print_preview", "write_page"]

_SHOWN_CHARS, _BEFORE_CHARS = 160, 40  # of a text in the terminal; of those before the first change
_COMPARED_CHARS = 5_000  # of a text on the page
_MOST_PRINTED = 20
_PART = re.compile(r"\s+|[^\s\w]|\w+")


def print_preview(found: Preview) -> None:
    """Counts, and side by side the first rows that are dropped or changed."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    counts = Table(box=None, show_header=False, pad_edge=False)
    for name, number in _counts(found):
        counts.add_row(name, f"{number:,}", f"{number / max(1, len(found.rows)):.1%}")
    console.print(counts)
    table = Table(show_lines=True, header_style="dim")
    for name in ("row", "before", "after"):
        table.add_column(name, overflow="fold", ratio=1 if name == "row" else 3)
    told = [row for row in found.rows if row.reason or row.changed][:_MOST_PRINTED]
    for row in told:
        first = 0 if row.reason else _first_change(row)
        dropped = f"[red]{row.reason}[/red]: {escape(row.detail or '')}"
        after = dropped if row.reason else _around(row.after, first)
        table.add_row(escape(row.id or row.place), _around(row.before, first), after)
    if told:
        console.print(table)


def _first_change(row: Shown) -> int:
    places = (place for place, (old, new) in enumerate(zip(row.before, row.after, strict=False)) if old != new)
    return next(places, min(len(row.before), len(row.after)))


def _around(text: str, place: int) -> str:
    start = max(0, place - _BEFORE_CHARS)
    end = start + _SHOWN_CHARS
    return escape("…" * (start > 0) + text[start:end] + "…" * (end < len(text)))


def _counts(found: Preview) -> Iterator[tuple[str, int]]:
    drawn = ", ".join(f"{number:,} of {source}" for source, number in found.read.items())
    yield f"rows, drawn from {drawn}", len(found.rows)
    yield "kept", sum(row.reason is None for row in found.rows)
    yield "kept and changed", sum(row.reason is None and row.changed for row in found.rows)
    for reason, number in found.reasons.most_common():
        yield f"dropped: {reason}", number
    for kind, number in found.masked.most_common():
        yield f"masked: {kind}", number


def write_page(path: Path, recipe: str, found: Preview) -> None:
    """All rows of the sample, the dropped ones first, then what is changed, side by side with the changes marked."""
    from pipelines.reports.page import write

    path.parent.mkdir(parents=True, exist_ok=True)
    order = sorted(found.rows, key=lambda row: (row.reason is None, not row.changed))
    marked = [(row, *_marked(row)) for row in order]
    write(path, "preview.html", recipe=recipe, counts=list(_counts(found)), rows=marked, total=len(found.rows))


def _beginning(text: str) -> str:
    return text[:_SHOWN_CHARS] + "…" * (len(text) > _SHOWN_CHARS)


def _marked(row: Shown) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in stretches, each with whether the other lacks it. Only the beginning of what stays as it is."""
    if row.reason or not row.changed:
        shown = row.before[:_COMPARED_CHARS] if row.reason else _beginning(row.before)
        return [(shown, False)], [(shown, False)]
    before, after = (_PART.findall(text[:_COMPARED_CHARS]) for text in (row.before, row.after))
    old: list[tuple[str, bool]] = []
    new: list[tuple[str, bool]] = []
    for kind, low, high, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        old.append(("".join(before[low:high]), kind != "equal"))
        new.append(("".join(after[start:end]), kind != "equal"))
    return old, new
