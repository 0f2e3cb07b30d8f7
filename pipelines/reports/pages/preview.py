"""The output of `korbert clean --preview`: a table in the terminal and a page."""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from korbert.corpus.cleaning.preview import Preview, Shown, preview
from korbert.messages import Message, in_language, join_messages
from korbert.pipelines import reports
from korbert.pipelines.artifacts.figures import label
from korbert.pipelines.reports.artifacts.clean import detail_of
from korbert.pipelines.reports.drawing import write
from korbert.pipelines.runs.pipeline import Pipeline
from korbert.system import console, say

_SHOWN_CHARS = 160  # of a text that is not expanded
_AROUND_CHARS = 40  # context before the first change; on the page, on both sides of each change
_COMPARED_CHARS = 5_000  # of a text on the page, from its first change
_MAX_CHANGES = 5  # per row of the page
_MAX_PRINTED = 20
_TOKEN = re.compile(r"\s+|[^\s\w]|\w+")


def preview_stage(pipeline: Pipeline, count: int) -> None:
    """Previews cleaning on about `count` rows: writes the page and prints the first changes."""
    sample = preview(pipeline.recipe.section("clean"), pipeline.sources.files("clean"), count)
    page = pipeline.folder / "preview.html"
    write_page(page, pipeline.recipe.name, sample)
    reports.index(pipeline.folder, [stage.name for stage in pipeline.stages()])
    print_preview(sample)
    say(Message("page: {path}", path=page))


def print_preview(sample: Preview) -> None:
    """Prints the counts, then the first dropped or changed rows, before and after."""
    out = console(highlight=False)
    counts = Table(box=None, show_header=False, pad_edge=False)
    for name, number in _counts(sample):
        counts.add_row(escape(in_language(name)), f"{number:,}", f"{number / max(1, len(sample.rows)):.1%}")
    for name, number in _mask_counts(sample):
        counts.add_row(escape(in_language(name)), f"{number:,}")
    out.print(counts)
    table = Table(show_lines=True, header_style="dim")
    table.add_column(in_language(Message("row")), overflow="fold", ratio=1)
    table.add_column(in_language(Message("before")), overflow="fold", ratio=3)
    table.add_column(in_language(Message("after")), overflow="fold", ratio=3)
    for row in [row for row in sample.rows if row.reason or row.changed][:_MAX_PRINTED]:
        # A dropped row is shown from its beginning, a changed one from shortly before its first change.
        start = 0 if row.reason else max(0, _first_change(row) - _AROUND_CHARS)
        before, after = (
            escape("…" * (start > 0) + _cut(text[start:], _SHOWN_CHARS)) for text in (row.before, row.after)
        )
        if row.reason:
            detail = in_language(detail_of(row.reason, row.detail or ""))
            after = f"[red]{in_language(label(row.reason))}[/red]: {escape(detail)}"
        table.add_row(escape(row.id or row.place), before, after)
    if table.rows:
        out.print(table)


def _first_change(row: Shown) -> int:
    changes = (index for index, (old, new) in enumerate(zip(row.before, row.after, strict=False)) if old != new)
    return next(changes, min(len(row.before), len(row.after)))


def _cut(text: str, size: int) -> str:
    return text[:size] + "…" * (len(text) > size)


def _counts(sample: Preview) -> Iterator[tuple[str, int]]:
    """Yields (label, number of rows) for each outcome."""
    counts = (Message("{number:,} of {source}", number=number, source=source) for source, number in sample.read.items())
    yield Message("rows, sampled from {read}", read=join_messages(counts, ", ")), len(sample.rows)
    yield Message("kept"), sum(row.reason is None for row in sample.rows)
    yield Message("kept and changed"), sum(row.reason is None and row.changed for row in sample.rows)
    for reason, number in sample.reasons.most_common():
        yield Message("dropped: {reason}", reason=label(reason)), number


def _mask_counts(sample: Preview) -> Iterator[tuple[str, int]]:
    """Yields (label, number of masks) for each kind of personal data; a row may have several masks."""
    for kind, number in sample.masked.most_common():
        yield Message("masked: {kind}", kind=label(kind)), number


def write_page(path: Path, recipe: str, sample: Preview) -> None:
    """Writes the page of a preview: counts, rows that cleaning changed, and rows that it dropped."""
    kept = [row for row in sample.rows if row.reason is None]
    write(
        path,
        "preview.html",
        recipe=recipe,
        counts=[*_counts(sample), *_mask_counts(sample)],
        total=len(sample.rows),
        changed=[(row, *changes(row)) for row in kept if row.changed],
        dropped=[
            (label(reason), number, [row for row in sample.rows if row.reason == reason])
            for reason, number in sample.reasons.most_common()
        ],
        same=[row for row in kept if not row.changed],
        beginning=lambda text: _cut(text, _SHOWN_CHARS),
        detail_of=detail_of,
        long_beginning=lambda text: _cut(text, _COMPARED_CHARS),
    )


def changes(row: Shown) -> tuple[list[tuple[str, str]], int]:
    """The first changes with some context, as (text, "" or "del" or "ins"), and the number of changes left out."""
    start = max(0, _first_change(row) - _AROUND_CHARS)
    before, after = (_TOKEN.findall(text[start : start + _COMPARED_CHARS]) for text in (row.before, row.after))
    edits = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    if max(len(row.before), len(row.after)) > start + _COMPARED_CHARS and len(edits) > 2 and edits[-1][0] != "equal":
        edits.pop()  # not a change: the texts were cut off at different positions
    stretches = [("…", "")] if start else []
    number = 0
    for index, (tag, i1, i2, j1, j2) in enumerate(edits):  # the names of difflib
        number += tag != "equal"
        if number > _MAX_CHANGES:
            continue
        old = "".join(before[i1:i2])
        if tag == "equal":
            stretches.append((_shorten(old, first=index == 0, last=index == len(edits) - 1), ""))
        else:
            marked = ((old, "del"), ("".join(after[j1:j2]), "ins"))
            stretches += [(_shorten(_visible_spaces(text)), mark) for text, mark in marked if text]
    return stretches, max(0, number - _MAX_CHANGES)


def _visible_spaces(text: str) -> str:
    """Changed text with visible white space: ␣ ⏎ ⇥, others as escapes. Spaces between words stay."""
    signs = {" ": "␣" if text.isspace() else " ", "\n": "⏎", "\t": "⇥"}
    return "".join(signs.get(char, ascii(char)[1:-1]) if char.isspace() else char for char in text)


def _shorten(text: str, *, first: bool = False, last: bool = False) -> str:
    """Shortens a stretch to its ends, on one line. first, last: leave out that end, where the row begins or ends."""
    text = text.replace("\n", "⏎")
    head = "" if first else text[:_AROUND_CHARS]
    tail = "" if last else text[-_AROUND_CHARS:]
    return text if len(text) <= len(head) + len(tail) else f"{head}…{tail}"
