"""What the readers hand on: segments of files, chunks of segments, and rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from corpus.settings import LONGEST_RECORD, SourceSettings
from korbert.errors import CorpusError

if TYPE_CHECKING:
    from upath import UPath

__all__ = [
    "SHOWN_BYTES",
    "UNDECODABLE",
    "Chunk",
    "File",
    "Kind",
    "Segment",
    "SourceRow",
    "checked_row",
    "decoded",
    "needed_columns",
    "pass_line",
    "too_long_row",
    "type_name",
    "undecodable_row",
]

File: TypeAlias = "Path | UPath"  # here, or behind an address that fsspec knows
Kind = Literal["jsonl", "text", "csv", "tsv", "parquet", "arrow", "wikipedia", "korquad"]

SHOWN_BYTES = 1 << 16  # of a record that is too long
_PASSED_BYTES = 1 << 20  # of its rest, read at once

_SURROGATE = re.compile("[\ud800-\udfff]")
UNDECODABLE = re.compile("[\udc80-\udcff]")  # what a byte that cannot be decoded becomes
_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
}


@dataclass(frozen=True)
class Segment:
    """Whole records of one file: lines or pages in UTF-8, or an Arrow stream of rows.

    first: the number of the first line, page or row, from 1. encoding: of the file; where it is not UTF-8, a byte that
    could not be decoded is a lone surrogate in `data`. columns: of a CSV or TSV file. record_bytes: 0, or the bytes of
    a single record that is too long, of which `data` is the beginning.
    """

    file: str
    first: int
    data: bytes
    encoding: str = "utf-8"
    columns: tuple[str, ...] = ()
    record_bytes: int = 0


@dataclass(frozen=True)
class Chunk:
    """What one work unit reads. numbered_by_file: more than one file, so a line's number alone is no id.

    longest: bytes that a record may have.
    """

    source: SourceSettings
    kind: Kind
    segments: tuple[Segment, ...]
    numbered_by_file: bool
    longest: int = LONGEST_RECORD


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A document as the source has it, or what is wrong with it: then `reason` is set, and `text` is the raw row.

    undecodable: bytes that are no text in the file's encoding; there are some only where that is the reason.
    """

    place: str
    id: str | int | None
    text: str
    reason: str | None = None
    detail: str = ""
    undecodable: int = 0


def decoded(data: bytes, encoding: str) -> str:
    """Text from a segment's bytes. A byte that cannot be decoded becomes one of U+DC80 to U+DCFF: see undecodable_row.

    encoding: of the segment.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="surrogateescape" if encoding == "utf-8" else "surrogatepass")


def undecodable_row(text: str, place: str, encoding: str, local: str | int | None = None) -> SourceRow | None:
    """The row of a text with bytes that could not be decoded, which it shows as `\\xNN`; None where there are none."""
    found = UNDECODABLE.findall(text)
    if not found:
        return None
    first = ord(found[0]) - 0xDC00
    detail = f"{place}: byte 0x{first:02x} at character {text.index(found[0])} is no {encoding.upper()}"
    return SourceRow(place, local, _readable(text), "bad_encoding", detail, len(found))


def _readable(text: str) -> str:
    return UNDECODABLE.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)


def too_long_row(beginning: bytes, size: int, place: str, encoding: str, longest: int) -> SourceRow:
    """The row of a record of `size` bytes, which nobody reads, with its first characters as text."""
    shown = beginning[:SHOWN_BYTES]
    while shown and shown[-1] >= 0x80:  # the last character may be cut
        shown = shown[:-1]
        if beginning[len(shown)] >= 0xC0:
            break
    detail = f"{place}: {size:,} bytes, and a record may have {longest:,}: of its text only the beginning is kept"
    return SourceRow(place, None, _readable(decoded(shown, encoding)).rstrip("\n"), "too_long", detail)


def pass_line(file: BufferedReader) -> int:
    """Skips the rest of the line without holding it. Returns the number of bytes skipped."""
    size = 0
    for piece in iter(lambda: file.readline(_PASSED_BYTES), b""):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def needed_columns(source: SourceSettings, present: Sequence[str], path: File, where: str = "") -> list[str]:
    """The columns of id and text. Raises CorpusError where one is not among those present. where: they were found."""
    columns = list(dict.fromkeys(filter(None, (source.id, source.text))))
    for column in columns:
        if column not in present:
            found = ", ".join(present) or "nothing"
            without = ' (id = "" takes the number of the line)' if column == source.id else ""
            raise CorpusError(
                f"{path}: no column {column!r} among {found}{where}: set id and text of {source.name!r}{without}"
            )
    return columns


def checked_row(record: dict[str, Any], place: str, source: SourceSettings, number: str, raw: str) -> SourceRow:
    """A row whose id and text have the right types, or the reason why not.

    number: the id where the source has none. raw: what to keep of a row that is dropped.
    """
    local = record.get(source.id) if source.id else number
    if isinstance(local, bool) or not isinstance(local, str | int) or local == "" or _SURROGATE.search(str(local)):
        return SourceRow(
            place, None, raw, "bad_id", f"{place}: {source.id!r} is {type_name(local)}, not a text or a whole number"
        )
    text = record.get(source.text)
    if not isinstance(text, str):
        return SourceRow(place, local, raw, "bad_text", f"{place}: {source.text!r} is {type_name(text)}, not a text")
    if found := _SURROGATE.search(text):
        detail = f"{place}: half a surrogate pair at character {found.start()}, which is no text"
        return SourceRow(place, local, raw, "bad_text", detail)
    return SourceRow(place, local, text)


def type_name(value: object) -> str:
    return "missing" if value is None else _JSON_NAMES.get(type(value), f"a {type(value).__name__}")
