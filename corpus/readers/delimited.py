"""CSV and TSV files with a line of names. In CSV a quoted field may hold line ends; in TSV a quote is a character."""

from collections.abc import Iterator
from io import BufferedReader

from corpus.readers.csv_records import csv_records
from corpus.readers.records import (
    SHOWN_BYTES,
    File,
    Segment,
    SourceRow,
    checked_row,
    decoded,
    needed_columns,
    pass_line,
    undecodable_row,
)
from corpus.settings import SourceSettings

__all__ = ["rows", "segments"]

_LONGEST_RECORD = 1 << 24  # bytes that a quoted field may go on beyond a part before its quote is taken for a mistake
_MAX_FIELD_CHARS = (1 << 31) - 1  # a document may be longer than the 128 KiB that Python's csv module allows


def segments(
    source: SourceSettings, kind: str, file: BufferedReader, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """Whole records of about `part_bytes`. Raises CorpusError where the first line lacks the columns of the source.

    longest: bytes that a record may have; of one with a longer line only the beginning is held.
    """
    head = file.readline(_LONGEST_RECORD)
    columns = tuple(_fields(decoded(head, "utf-8").removeprefix("\ufeff"), kind))
    needed_columns(source, columns, path, " in its first line")
    held: list[bytes] = []
    first, size, quotes = 2, 0, 0
    for line in iter(lambda: file.readline(longest + 1), b""):
        if len(line) > longest:
            if held:
                yield Segment(name, first, b"".join(held), columns=columns)
            first += len(held)
            rest = 0 if line.endswith(b"\n") else pass_line(file)
            yield Segment(name, first, line[:SHOWN_BYTES], columns=columns, record_bytes=len(line) + rest)
            first, held, size, quotes = first + 1, [], 0, 0
            continue
        held.append(line)
        size += len(line)
        quotes += line.count(b'"')
        if size >= part_bytes and (kind == "tsv" or quotes % 2 == 0 or size >= part_bytes + _LONGEST_RECORD):
            yield Segment(name, first, b"".join(held), columns=columns)
            first, held, size, quotes = first + len(held), [], 0, 0
    if held:
        yield Segment(name, first, b"".join(held), columns=columns)


def rows(segment: Segment, source: SourceSettings, kind: str, prefix: str) -> Iterator[SourceRow]:
    """The rows of a segment, good or bad; see tables.rows."""
    for number, raw, fields in _records(segment, kind):
        place = f"{segment.file} line {number}"
        if wrong := undecodable_row(raw, place, segment.encoding):
            yield wrong
        elif fields is None:
            yield SourceRow(
                place, None, raw, "bad_csv", f"{place}: a quoted field does not end, or goes on after its quote"
            )
        elif len(fields) != len(segment.columns):
            detail = f"{place}: {len(fields)} fields where the first line has {len(segment.columns)}"
            yield SourceRow(place, None, raw, "bad_csv", detail)
        else:
            record = dict(zip(segment.columns, fields, strict=True))
            yield checked_row(record, place, source, f"{prefix}{number}", raw)


def _records(segment: Segment, kind: str) -> Iterator[tuple[int, str, list[str] | None]]:
    """Number of the first line, text, and fields of each record that is not blank; None for what is no record."""
    lines = [decoded(line, segment.encoding) + "\n" for line in segment.data.removesuffix(b"\n").split(b"\n")]
    if kind == "tsv":
        for number, line in enumerate(lines, segment.first):
            if line.strip():
                yield number, line, _fields(line, kind)
        return
    for before, record, fields in csv_records(lines, _MAX_FIELD_CHARS):
        if record and record.strip():
            yield segment.first + before, record, fields


def _fields(line: str, kind: str) -> list[str]:
    """The fields of one line; none where it is no record."""
    if kind == "tsv":
        return line.rstrip("\r\n").split("\t")
    return next(csv_records([line], _MAX_FIELD_CHARS), (0, line, None))[2] or []
