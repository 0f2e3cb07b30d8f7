"""What `korbert clean --preview` prints and draws."""

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from corpus.cleaning.preview import Preview, Shown, preview
from korbert.terminal import printable

if TYPE_CHECKING:
    from pipelines.pipeline import Pipeline

__all__ = ["preview_stage", "print_preview", "write_page"]

_SHOWN_CHARS = 160  # of a text that is not unfolded
_AROUND_CHARS = 40  # before the first change; on the page, to both sides of each
_COMPARED_CHARS = 5_000  # of a text on the page, from its first change
_MAX_CHANGES = 5  # of a row on the page
_MAX_PRINTED = 20
_PART = re.compile(r"\s+|[^\s\w]|\w+")


def preview_stage(pipeline: "Pipeline", count: int) -> None:
    """Prints what `clean` would do to about `count` rows, and writes the page."""
    from pipelines.reports import index

    found = preview(pipeline.recipe.section("clean"), pipeline.sources("clean"), count)
    page = pipeline.folder / "preview.html"
    write_page(page, pipeline.recipe.name, found)
    index(pipeline.folder, [stage.name for stage in pipeline.stages()])
    print_preview(found)
    print(f"page: {page}")


def print_preview(found: Preview) -> None:
    """Counts, and side by side the first rows that are dropped or changed."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    counts = Table(box=None, show_header=False, pad_edge=False)
    for name, number in _counts(found):
        counts.add_row(escape(printable(name)), f"{number:,}", f"{number / max(1, len(found.rows)):.1%}")
    console.print(counts)
    table = Table(show_lines=True, header_style="dim")
    for name in ("row", "before", "after"):
        table.add_column(name, overflow="fold", ratio=1 if name == "row" else 3)
    told = [row for row in found.rows if row.reason or row.changed][:_MAX_PRINTED]
    for row in told:
        first = 0 if row.reason else _first_change(row)
        dropped = f"[red]{row.reason}[/red]: {escape(printable(row.detail or ''))}"
        after = dropped if row.reason else _around(row.after, first)
        table.add_row(escape(printable(row.id or row.place)), _around(row.before, first), after)
    if told:
        console.print(table)


def _first_change(row: Shown) -> int:
    places = (place for place, (old, new) in enumerate(zip(row.before, row.after, strict=False)) if old != new)
    return next(places, min(len(row.before), len(row.after)))


def _around(text: str, place: int) -> str:
    start = max(0, place - _AROUND_CHARS)
    end = start + _SHOWN_CHARS
    return escape(printable("…" * (start > 0) + text[start:end] + "…" * (end < len(text))))


def _counts(found: Preview, words: Callable[[str], str] = str) -> Iterator[tuple[str, int]]:
    """words: for reasons and kinds of personal data."""
    drawn = ", ".join(f"{number:,} of {source}" for source, number in found.read.items())
    yield f"rows, drawn from {drawn}", len(found.rows)
    yield "kept", sum(row.reason is None for row in found.rows)
    yield "kept and changed", sum(row.reason is None and row.changed for row in found.rows)
    for reason, number in found.reasons.most_common():
        yield f"dropped: {words(reason)}", number
    for kind, number in found.masked.most_common():
        yield f"masked: {words(kind)}", number


@dataclass(frozen=True)
class _Row:
    """A row of the page.

    beginning: of the text, where nothing is compared. rest: texts that unfold. stretches: (text, "", "del" or "ins").
    more: changes that are not among them.
    """

    name: str
    beginning: str
    rest: tuple[str, ...]
    detail: str = ""
    stretches: tuple[tuple[str, str], ...] = ()
    more: int = 0


def write_page(path: Path, recipe: str, found: Preview) -> None:
    """What is changed, in short, what is dropped, by reason, and what stays as it is; the whole texts unfold."""
    from pipelines.reports.labels import label
    from pipelines.reports.page import write

    kept = [row for row in found.rows if row.reason is None]
    dropped = [
        (label(reason), number, [_unchanged(row) for row in found.rows if row.reason == reason])
        for reason, number in found.reasons.most_common()
    ]
    write(
        path,
        "preview.html",
        recipe=recipe,
        counts=list(_counts(found, label)),
        total=len(found.rows),
        changed=[_changed(row) for row in kept if row.changed],
        dropped=dropped,
        same=[_unchanged(row) for row in kept if not row.changed],
    )


def _unchanged(row: Shown) -> _Row:
    """A row whose text before is all there is to see."""
    beginning = _cut(row.before, _SHOWN_CHARS)
    rest = (_cut(row.before, _COMPARED_CHARS),) if beginning != row.before else ()
    return _Row(row.id or row.place, beginning, rest, row.detail or "")


def _cut(text: str, size: int) -> str:
    return text[:size] + "…" * (len(text) > size)


def _changed(row: Shown) -> _Row:
    """The first changes of a row, each with a little of what is around it."""
    start = max(0, _first_change(row) - _AROUND_CHARS)
    before, after = (_PART.findall(text[start : start + _COMPARED_CHARS]) for text in (row.before, row.after))
    found = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    if max(len(row.before), len(row.after)) > start + _COMPARED_CHARS and len(found) > 2 and found[-1][0] != "equal":
        found.pop()  # one text was cut off later than the other
    stretches: list[tuple[str, str]] = [("…", "")] if start else []
    changes = 0
    for place, (kind, low, high, first, last) in enumerate(found):
        old, new = "".join(before[low:high]), "".join(after[first:last])
        if kind != "equal":
            changes += 1
        if changes > _MAX_CHANGES:
            continue
        if kind == "equal":
            stretches.append((_inner(old, first=place == 0, last=place == len(found) - 1), ""))
        else:
            stretches += [(_inner(_spaces(text)), name) for text, name in ((old, "del"), (new, "ins")) if text]
    texts = tuple(_cut(text, _COMPARED_CHARS) for text in (row.before, row.after))
    return _Row(row.id or row.place, "", texts, stretches=tuple(stretches), more=max(0, changes - _MAX_CHANGES))


def _spaces(text: str) -> str:
    """Changed text with its white space in signs, or nobody could see what became of it."""
    named = {" ": "␣" if text.isspace() else " ", "\n": "⏎", "\t": "⇥"}
    return "".join(named.get(char, ascii(char)[1:-1]) if char.isspace() else char for char in text)


def _inner(text: str, *, first: bool = False, last: bool = False) -> str:
    """The two ends of a stretch, on one line. first, last: it begins or ends the row, so that end is left out."""
    text = text.replace("\n", "⏎")
    head, tail = ("" if first else text[:_AROUND_CHARS]), ("" if last else text[-_AROUND_CHARS:])
    return text if len(text) <= len(head) + len(tail) else f"{head}…{tail}"
