"""The records that readers pass on: segments of files, chunks of segments, and rows."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from korbert.corpus.corpus_settings import LONGEST_RECORD, FileKind, SourceSettings
from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.names import nfc
from korbert.records import UNDECODABLE, Delimited, Fault, File, Line, beginning_of, type_name

IdAndText: TypeAlias = Sequence[Any] | Fault
"""Id and text of a record of a table, or its fault."""

SHOWN_BYTES = 1 << 16  # kept of a record that is too long

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Segment:
    """Whole records of one file: lines or pages in UTF-8, or records that have been read.

    first: number of the first line, page or record, from 1. encoding: of the file; if it is not UTF-8, an undecodable
    byte is a lone surrogate in `data`. record_bytes: 0, or the size of a single record that is too long, whose
    beginning is `data`. table_bytes: of records that have been read. columns: those of id and text in CSV and TSV.
    """

    file: str
    first: int
    data: bytes | tuple[IdAndText, ...]
    encoding: str = "utf-8"
    record_bytes: int = 0
    table_bytes: int = 0
    columns: tuple[str, ...] = ()
    delimited: Delimited | None = None

    @classmethod
    def of(cls, file: str, lines: Line) -> Self:
        """Lines, or the beginning of one that is too long."""
        if not lines.cut:
            return cls(file, lines.number, lines.data)
        return cls(file, lines.number, lines.data[:SHOWN_BYTES], record_bytes=lines.size)

    @property
    def size(self) -> int:
        """Bytes of text."""
        return len(self.data) if isinstance(self.data, bytes) else self.table_bytes


@dataclass(frozen=True)
class Chunk:
    """The segments that one work unit reads.

    numbered_by_file: the source has several files, so that ids made of line numbers need the name of the file.
    longest: maximum bytes of a record.
    """

    source: SourceSettings
    kind: FileKind
    segments: tuple[Segment, ...]
    numbered_by_file: bool
    longest: int = LONGEST_RECORD

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def content(self) -> Iterator[str | int | bytes]:
        """What a digest of the chunk covers besides its source: the names, places and bytes of its segments."""
        for segment in self.segments:
            yield from (segment.file, segment.first, segment.record_bytes)
            if isinstance(segment.data, bytes):
                yield segment.data
            else:
                yield from (str(item) for cells in segment.data for item in cells)


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

    def document_id(self, source: str) -> str | None:
        """Its id in the corpus, wiki:kowiki-9; None if unreadable."""
        return None if self.id is None else f"{source}:{self.id}"


def faulty_row(place: str, local: str | int | None, raw: str, reason: str, fault: str) -> SourceRow:
    """The row of a record that is not a document. local: its id, if readable. fault: the details, for messages."""
    shown = raw.encode("utf-8", "backslashreplace").decode()  # JSON may hold half a surrogate pair, a file may not
    return SourceRow(place, local, shown, reason, Message("{place}: {fault}", place=place, fault=fault))


def undecodable_row(text: str, place: str, encoding: str, local: str | int | None = None) -> SourceRow | None:
    """The faulty row of a text with undecodable bytes, shown as `\\xNN`; None if there are none."""
    undecodable = UNDECODABLE.findall(text)
    if not undecodable:
        return None
    detail = Message(
        "{place}: byte 0x{byte:02x} at character {character} is no {encoding}",
        place=place,
        byte=ord(undecodable[0]) - 0xDC00,
        character=text.index(undecodable[0]),
        encoding=encoding.upper(),
    )
    return SourceRow(place, local, _readable(text), "bad_encoding", detail, len(undecodable))


def _readable(text: str) -> str:
    return UNDECODABLE.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)


def too_long(beginning: bytes, size: int, encoding: str, longest: int) -> Fault:
    """The fault of a record of `size` bytes, more than `longest`. Only its beginning was read."""
    what = Message(
        "{size:,} bytes, and a record may have {longest:,}: of its text only the beginning is kept",
        size=size,
        longest=longest,
    )
    return Fault("too_long", what, raw=beginning_of(beginning[:SHOWN_BYTES], encoding))


def needed_columns(source: SourceSettings, present: Sequence[str], path: File) -> list[str]:
    """The columns of id and text, as the file spells them. Raises CorpusError if one is not present."""
    spelled = {nfc(column): column for column in present}
    columns = []
    for column in source.fields:
        if (spelling := spelled.get(nfc(column))) is None:
            hint = Message(' (id = "" takes the number of the line)') if column == source.id else ""
            raise CorpusError(
                "{path}: no column {column!r} among {present}: set id and text of {source!r}{hint}",
                path=path,
                column=column,
                present=", ".join(present),
                source=source.name,
                hint=hint,
            )
        columns.append(spelling)
    return columns


def row_of(
    cells: IdAndText, place: str, number: str, encoding: str, source: SourceSettings, raw: str | None = None
) -> SourceRow:
    """The row of a record, faulty if its id or its text is missing or of the wrong type.

    number: the id of a record without one. raw: the record as text, kept if it is faulty; None: as its text.
    """
    if isinstance(cells, Fault):
        if cells.reason == "too_long":
            return faulty_row(place, None, _readable(cells.raw).rstrip("\n"), cells.reason, cells.what)
        raw = raw or cells.raw
        return undecodable_row(raw, place, encoding) or faulty_row(place, None, raw, cells.reason, cells.what)
    *id, text = cells
    local = id[0] if id else number
    shown = raw or ("" if text is None else str(text))
    of_text = None if raw else local  # an undecodable byte of the raw record may be in its id
    if undecodable := undecodable_row(shown, place, encoding, of_text):
        return undecodable
    if isinstance(local, bool) or not isinstance(local, str | int) or local == "" or _SURROGATE.search(str(local)):
        fault = Message("{field!r} is {kind}, not a text or a whole number", field=source.id, kind=_named(local))
        return faulty_row(place, None, shown, "bad_id", fault)
    if not isinstance(text, str):
        fault = Message("{field!r} is {kind}, not a text", field=source.text, kind=_named(text))
    elif surrogate := _SURROGATE.search(text):
        fault = Message("half a surrogate pair at character {character}, which is no text", character=surrogate.start())
    else:
        return SourceRow(place, local, text)
    return faulty_row(place, local, shown, "bad_text", fault)


def _named(value: object) -> Message:
    return Message("missing") if value is None else type_name(value)
