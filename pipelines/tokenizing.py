"""Text shown as its pieces: what `korbert tokenize` prints and draws."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from rich.markup import escape

from korbert.errors import SettingsError
from korbert.terminal import printable
from korbert.tokenization import Pieces, Tokenizer
from korbert.tokenization.encoding import EOJEOL
from pipelines import lines

__all__ = [
    "Row",
    "Unit",
    "as_json",
    "describe_change",
    "print_table",
    "rows",
    "units",
    "write_page",
]


_MAX_PAGE_CHARS = 200_000  # about 30 MB of HTML


class Row(TypedDict):
    """One piece. span: half-open, in code points of the text. eojeol: counted from 0."""

    piece: str
    id: int
    span: tuple[int, int]
    tag: str
    eojeol: int


@dataclass(frozen=True)
class Unit:
    """Characters that belong together on a page, and the pieces over them; none where they are left out (a space).

    Fused morphemes share their characters and so make one unit: 했 with 하 and 었.
    """

    text: str
    pieces: tuple[tuple[str, str], ...]  # piece and tag


def rows(found: Pieces) -> Iterator[Row]:
    """The pieces of one text, in order."""
    eojeol = -1
    columns = (found.pieces, found.ids, found.spans, found.tags, found.boundaries)
    for piece, id, span, tag, boundary in zip(*columns, strict=True):
        eojeol += boundary >= EOJEOL
        yield {"piece": piece, "id": id, "span": span, "tag": tag, "eojeol": eojeol}


def as_json(text: str, found: Pieces) -> bytes:
    """One line: {"text", "pieces": [Row, ..]}."""
    return lines.as_json({"text": text, "pieces": list(rows(found))})


def print_table(text: str, found: Pieces) -> None:
    """The pieces one below the other, with the characters that each stands for."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("piece", "id", "span", "characters", "tag", "eojeol"):
        table.add_column(name, justify="right" if name in ("id", "eojeol") else "left", no_wrap=True)
    for row in rows(found):
        start, end = row["span"]
        cells = (row["piece"], str(row["id"]), f"{start}:{end}", text[start:end], row["tag"], str(row["eojeol"]))
        table.add_row(*(escape(printable(cell)) for cell in cells))
    Console(highlight=False).print(table)


def describe_change(tokenizer: Tokenizer) -> str:
    """How many pieces of the sentences that it was saved with the installed Kiwi changes, and in which of them."""
    found = tokenizer.compare_probe()
    if found is None:
        return "this tokenizer was saved without sentences to compare"
    versions = ", ".join(f"{name} {made}" for name, made in tokenizer.versions.items())
    here = ", ".join(f"{name} {version}" for name, version in tokenizer.analyzer.versions.items())
    share = found.changed / max(1, found.pieces)
    head = (
        f"{found.changed:,} of {found.pieces:,} pieces differ ({share:.1%}): made with {versions}; installed is {here}"
    )
    return "\n".join([head, *found.texts])


def units(text: str, found: Pieces) -> list[Unit]:
    """The text in order, nothing left out and nothing twice, however the spans of its pieces overlap."""
    groups: list[tuple[int, int, list[tuple[str, str]]]] = []
    for piece, tag, (start, end) in zip(found.pieces, found.tags, found.spans, strict=True):
        if groups and (start < groups[-1][1] or start == end == groups[-1][1]):  # fused, or without characters
            low, high, names = groups.pop()
            groups.append((min(low, start), max(high, end), [*names, (piece, tag)]))
        else:
            groups.append((start, end, [(piece, tag)]))
    return list(_filled(text, groups))


def _filled(text: str, groups: Iterable[tuple[int, int, list[tuple[str, str]]]]) -> Iterator[Unit]:
    at = 0
    for low, high, names in groups:
        if at < low:
            yield Unit(text[at:low], ())
        yield Unit(text[max(at, low) : high], tuple(names))
        at = max(at, high)
    if at < len(text):
        yield Unit(text[at:], ())


def write_page(
    path: Path, tokenizer: Tokenizer, texts: Iterable[tuple[str, str]], *, special_tokens: bool = False
) -> int:
    """A page with the pieces of each text below its characters. Returns the number of texts.

    texts: places and texts, as pipelines.lines gives them. SettingsError where they are more than a page can hold.
    """
    from pipelines.reports.page import write

    shown: list[list[Unit]] = []
    chars = 0
    for place, text in texts:
        chars += len(text)
        if chars > _MAX_PAGE_CHARS:
            raise SettingsError(
                f"{place}: a page holds {_MAX_PAGE_CHARS:,} characters: give fewer texts, or use --json"
            )
        shown.append(units(text, tokenizer.encode_pieces(text, special_tokens=special_tokens)))
    number = sum(len(unit.pieces) for text in shown for unit in text)
    write(path, "pieces.html", texts=shown, number=number, vocab_size=tokenizer.vocab_size, digest=tokenizer.digest)
    return len(shown)
