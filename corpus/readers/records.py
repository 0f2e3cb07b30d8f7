"""The records that readers pass on: segments of files, chunks of segments, and rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, Literal

from corpus.settings import LONGEST_RECORD, SourceSettings
from korbert.errors import CorpusError
from korbert.records.encodings import UNDECODABLE, decoded
from korbert.records.frames import File

__all__ = [
    "SHOWN_BYTES",
    "Chunk",
    "File",
    "Kind",
    "Segment",
    "SourceRow",
    "checked_row",
    "faulty_row",
    "needed_columns",
    "pass_line",
    "too_long_row",
    "type_name",
    "undecodable_row",
]

Kind = Literal["jsonl", "json", "text", "csv", "tsv", "parquet", "arrow", "wikipedia", "korquad"]

SHOWN_BYTES = 1 << 16  # kept of a record that is too long
_PASSED_BYTES = 1 << 20  # of its rest, read at once

_SURROGATE = re.compile("[\ud800-\udfff]")
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

    first: number of the first line, page or row, from 1. encoding: of the file; if it is not UTF-8, an undecodable byte
    is a lone surrogate in `data`. columns: of a CSV or TSV file. record_bytes: 0, or the size of a single record that
    is too long, whose beginning is `data`.
    """

    file: str
    first: int
    data: bytes
    encoding: str = "utf-8"
    columns: tuple[str, ...] = ()
    record_bytes: int = 0


@dataclass(frozen=True)
class Chunk:
    """The segments that one work unit reads.

    numbered_by_file: the source has several files, so that ids made of line numbers need the name of the file.
    longest: maximum bytes of a record.
    """

    source: SourceSettings
    kind: Kind
    segments: tuple[Segment, ...]
    numbered_by_file: bool
    longest: int = LONGEST_RECORD

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(len(segment.data) for segment in self.segments)

    @property
    def content(self) -> list[str | int | bytes]:
        """What a digest of the chunk covers besides its source: the names, places and bytes of its segments."""
        return [
            item
            for segment in self.segments
            for item in (segment.file, segment.first, segment.data, segment.record_bytes)
        ]


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A document as found in its source; or a faulty record, with a reason, details, and the raw record as its text.

    place: file and line, page or row, for messages. undecodable: number of undecodable bytes; 0 unless they are the
    reason.
    """

    place: str
    id: str | int | None
    text: str
    reason: str | None = None
    detail: str = ""
    undecodable: int = 0


def faulty_row(place: str, local: str | int | None, raw: str, reason: str, fault: str) -> SourceRow:
    """The row of a record that is not a document. local: its id, if readable. fault: the details, for messages."""
    return SourceRow(place, local, raw, reason, f"{place}: {fault}")


def undecodable_row(text: str, place: str, encoding: str, local: str | int | None = None) -> SourceRow | None:
    """The faulty row of a text with undecodable bytes, shown as `\\xNN`; None if there are none."""
    undecodable = UNDECODABLE.findall(text)
    if not undecodable:
        return None
    first = ord(undecodable[0]) - 0xDC00
    detail = f"{place}: byte 0x{first:02x} at character {text.index(undecodable[0])} is no {encoding.upper()}"
    return SourceRow(place, local, _readable(text), "bad_encoding", detail, len(undecodable))


def _readable(text: str) -> str:
    return UNDECODABLE.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)


def too_long_row(beginning: bytes, size: int, place: str, encoding: str, longest: int) -> SourceRow:
    """The faulty row of a record of `size` bytes, more than `longest`. Only its beginning was read."""
    shown = beginning[:SHOWN_BYTES]
    while shown and shown[-1] >= 0x80:  # the last character may be incomplete
        shown = shown[:-1]
        if beginning[len(shown)] >= 0xC0:
            break
    fault = f"{size:,} bytes, and a record may have {longest:,}: of its text only the beginning is kept"
    return faulty_row(place, None, _readable(decoded(shown, encoding)).rstrip("\n"), "too_long", fault)


def pass_line(file: BufferedReader) -> int:
    """Skips the rest of the line without holding it in memory. Returns the number of bytes skipped."""
    size = 0
    for piece in iter(lambda: file.readline(_PASSED_BYTES), b""):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def needed_columns(source: SourceSettings, present: Sequence[str], path: File, where: str = "") -> list[str]:
    """The columns of id and text. Raises CorpusError if one is not present. where: ends the list of those present."""
    columns = list(dict.fromkeys(filter(None, (source.id, source.text))))
    for column in columns:
        if column not in present:
            names = ", ".join(present) or "nothing"
            hint = ' (id = "" takes the number of the line)' if column == source.id else ""
            raise CorpusError(
                f"{path}: no column {column!r} among {names}{where}: set id and text of {source.name!r}{hint}"
            )
    return columns


def checked_row(record: dict[str, Any], place: str, source: SourceSettings, number: str, raw: str) -> SourceRow:
    """The row of a record, faulty if its id or its text is missing or of the wrong type.

    number: the id if the source has none. raw: the record as text, kept if it is faulty.
    """
    local = record.get(source.id) if source.id else number
    if isinstance(local, bool) or not isinstance(local, str | int) or local == "" or _SURROGATE.search(str(local)):
        fault = f"{source.id!r} is {type_name(local)}, not a text or a whole number"
        return faulty_row(place, None, raw, "bad_id", fault)
    text = record.get(source.text)
    if not isinstance(text, str):
        return faulty_row(place, local, raw, "bad_text", f"{source.text!r} is {type_name(text)}, not a text")
    if surrogate := _SURROGATE.search(text):
        fault = f"half a surrogate pair at character {surrogate.start()}, which is no text"
        return faulty_row(place, local, raw, "bad_text", fault)
    return SourceRow(place, local, text)


def type_name(value: object) -> str:
    """The type of a JSON value, in words."""
    return "missing" if value is None else _JSON_NAMES.get(type(value), f"a {type(value).__name__}")
