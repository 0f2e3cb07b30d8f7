"""The records that readers pass on: segments of files, chunks of segments, and rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from korbert.corpus.corpus_settings import LONGEST_RECORD, FileKind, SourceSettings
from korbert.messages import Message
from korbert.records import Delimited, Fault, Line, beginning_of

IdAndText: TypeAlias = Sequence[Any] | Fault
"""Id and text of a record of a table, or its fault."""

SHOWN_BYTES = 1 << 16  # kept of a record that is too long


@dataclass(frozen=True)
class Segment:
    """Whole records of one file: lines or pages in UTF-8, or records that have been read.

    first: number of the first line, page or record, from 1. encoding: of the file; if it is not UTF-8, an undecodable
    byte is a lone surrogate in `data`. record_bytes: 0, or the size of a single record that is too long, whose
    beginning is `data`. table_bytes: size of read records. columns: those of id and text in CSV and TSV.
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
        """Makes a segment of lines, or of the beginning of a line that is too long."""
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
        """What a digest of the chunk covers besides its source in the settings: all that decides its rows."""
        yield from (self.source.id, self.kind, self.numbered_by_file)
        for segment in self.segments:
            yield from (segment.file, segment.first, segment.record_bytes)
            yield from (segment.encoding, repr(segment.columns), repr(segment.delimited))
            if isinstance(segment.data, bytes):
                yield segment.data
            else:
                yield from (repr(item) for cells in segment.data for item in cells)


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
        """Returns the id of the document in the corpus, such as wiki:kowiki-9; None if the id is unreadable."""
        return None if self.id is None else f"{source}:{self.id}"


def faulty_row(place: str, local: str | int | None, raw: str, reason: str, fault: str) -> SourceRow:
    """The row of a record that is not a document. local: its id, if readable. fault: the details, for messages."""
    shown = raw.encode("utf-8", "backslashreplace").decode()  # JSON may hold half a surrogate pair, a file may not
    return SourceRow(place, local, shown, reason, Message("{place}: {fault}", place=place, fault=fault))


def too_long(beginning: bytes, size: int, encoding: str, longest: int) -> Fault:
    """The fault of a record of `size` bytes, more than `longest`. Only its beginning was read."""
    what = Message(
        "{size:,} bytes, and a record may have {longest:,}: of its text only the beginning is kept",
        size=size,
        longest=longest,
    )
    return Fault("too_long", what, raw=beginning_of(beginning[:SHOWN_BYTES], encoding))
