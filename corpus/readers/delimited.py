"""CSV and TSV files with a header line. A quoted field of CSV may span lines; in TSV a quote is a character."""

import re
from collections.abc import Iterator
from io import BufferedReader

from corpus.readers.records import (
    SHOWN_BYTES,
    File,
    Segment,
    SourceRow,
    checked_row,
    faulty_row,
    needed_columns,
    pass_line,
    undecodable_row,
)
from corpus.settings import SourceSettings
from korbert.records.csv_records import MALFORMED, csv_records
from korbert.records.encodings import decoded

__all__ = ["rows", "segments"]

_MAX_OVERHANG_BYTES = 1 << 24  # of a quoted field beyond its part; a longer one has a mistaken quote
_OPENS = re.compile(rb'(?:^|,)"')  # a quote anywhere else in an unquoted field is a character
_REST = re.compile(rb'(?:[^"]|"")*+"(?!")')  # of a quoted field, with its last quote
_MAX_FIELD_CHARS = (1 << 31) - 1  # a document may be longer than the 128 KiB that Python's csv module allows


def segments(
    source: SourceSettings, kind: str, file: BufferedReader, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """Whole records, about `part_bytes` in a segment. Raises CorpusError if the header lacks a column of the source.

    longest: maximum bytes of a record; of a longer line only the beginning is kept.
    """
    head = file.readline(_MAX_OVERHANG_BYTES)
    columns = tuple(_fields(decoded(head, "utf-8").removeprefix("\ufeff"), kind))
    needed_columns(source, columns, path, " in its first line")
    lines: list[bytes] = []
    first, size, inside = 2, 0, False  # inside: the last line ends inside a quoted field
    for line in iter(lambda: file.readline(longest + 1), b""):
        if len(line) > longest:
            if lines:
                yield Segment(name, first, b"".join(lines), columns=columns)
            first += len(lines)
            rest = 0 if line.endswith(b"\n") else pass_line(file)
            yield Segment(name, first, line[:SHOWN_BYTES], columns=columns, record_bytes=len(line) + rest)
            first, lines, size, inside = first + 1, [], 0, False
            continue
        lines.append(line)
        size += len(line)
        inside = kind == "csv" and _ends_inside(line, inside)
        if size >= part_bytes and (not inside or size >= part_bytes + _MAX_OVERHANG_BYTES):
            yield Segment(name, first, b"".join(lines), columns=columns)
            first, lines, size, inside = first + len(lines), [], 0, False
    if lines:
        yield Segment(name, first, b"".join(lines), columns=columns)


def _ends_inside(line: bytes, inside: bool) -> bool:
    """Whether a line ends inside a quoted field. inside: whether it begins there."""
    place = 0
    while (match := (_REST.match if inside else _OPENS.search)(line, place)) is not None:
        place, inside = match.end(), not inside
    return inside


def rows(segment: Segment, source: SourceSettings, kind: str, prefix: str) -> Iterator[SourceRow]:
    """The rows of a segment, faulty ones included. prefix: stands before a row's number, if that is its id."""
    for number, raw, fields in _records(segment, kind):
        place = f"{segment.file} line {number}"
        if undecodable := undecodable_row(raw, place, segment.encoding):
            yield undecodable
        elif fields is None:
            yield faulty_row(place, None, raw, "bad_csv", MALFORMED)
        elif len(fields) != len(segment.columns):
            fault = f"{len(fields)} fields where the first line has {len(segment.columns)}"
            yield faulty_row(place, None, raw, "bad_csv", fault)
        else:
            record = dict(zip(segment.columns, fields, strict=True))
            yield checked_row(record, place, source, f"{prefix}{number}", raw)


def _records(segment: Segment, kind: str) -> Iterator[tuple[int, str, list[str] | None]]:
    """(number of the first line, text, fields) of each record that is not blank; fields is None if it is malformed."""
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
    """The fields of one line; an empty list if it is malformed."""
    if kind == "tsv":
        return line.rstrip("\r\n").split("\t")
    return next(csv_records([line], _MAX_FIELD_CHARS), (0, line, None))[2] or []
