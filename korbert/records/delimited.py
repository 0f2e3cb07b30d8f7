"""Reads CSV and TSV files with a header line.

A quoted field may span lines; a mistaken quote costs only its own line.
"""

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.records.lines import LONGEST
from korbert.records.table import Fault, Records, Table, TextFile

_MALFORMED = Message(
    "a quoted field does not end or goes on after its quote, or a carriage return stands outside quotes"
)
_VOTES = 1_000  # at most this many records with a quote are examined
_SEPARATOR = re.compile(r"sep=(.)")  # a first line that Excel writes and reads
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_REST = re.compile(rb'(?:[^"]|"")*+"(?!")')  # of a quoted field, with its last quote

_Fields: TypeAlias = Iterator[tuple[int, str, list[str] | Fault]]  # lines before it, text, fields


@dataclass(frozen=True)
class Delimited:
    """How a file is delimited. quoted: quotes delimit fields. header_lines: up to the names of the columns."""

    delimiter: str
    quoted: bool
    columns: tuple[str, ...]
    header_lines: int

    def records(self, lines: Iterable[str], longest: int) -> _Fields:
        """Each non-blank record of lines below the header. longest: characters of a field."""
        width = len(self.columns)
        for before, text, fields in _fields(lines, self.delimiter, self.quoted, longest):
            if not isinstance(fields, Fault) and len(fields) == 1 < width and self.delimiter == "\t":
                fields = fields[0].split("\t")  # a program put quotes around the whole line
            if not isinstance(fields, Fault) and (len(fields) < width or any(fields[width:])):
                fields = Fault(
                    "bad_fields",
                    Message("{count} fields where the first line has {width}", count=len(fields), width=width),
                    raw=text,
                )
            yield before, text, fields

    def ends_inside(self, lines: bytes, inside: bool) -> bool:
        """Whether lines end inside a quoted field. inside: whether they begin there."""
        opens = re.compile(b'(?:^|%s)"' % re.escape(self.delimiter.encode()), re.MULTILINE)
        position = 0  # a quote anywhere else in an unquoted field is a character
        while self.quoted and (match := (_REST.match if inside else opens.search)(lines, position)) is not None:
            position = match.end()
            inside = not inside
        return inside


def read_delimited(text: TextFile, delimiter: str, quoted: bool | None = None) -> Table:
    """The records below a line that names the columns.

    delimiter: "," also stands for semicolons, as of Excel, or bars, if the first line has them instead of commas, or is
    sep=;.
    quoted: whether quotes delimit fields, or are plain characters; None: detected by are_quoted.
    """
    first = next(filter(str.strip, text.head), "")
    separator = _SEPARATOR.fullmatch(first)
    if separator:
        delimiter = separator[1]
    elif delimiter == ",":
        delimiter = delimiter_in(first.replace("\t", " "))
    if quoted is None:
        quoted = are_quoted(text.lines(), delimiter, text.longest)

    rows = _fields(text.lines(), delimiter, quoted, text.longest)
    if separator:
        next(rows)
    before, header, columns = next(rows, (0, "", Fault("", Message("holds only blank lines"))))
    if isinstance(columns, Fault):
        raise CorpusError(
            "{text}, line {before}, which names the columns: {what}: mend it",
            text=text.path,
            before=before + 1,
            what=columns.what,
        )
    names = tuple(column.strip() for column in columns)
    layout = Delimited(delimiter, quoted, names, before + header.count("\n"))

    def read(wanted: Sequence[str]) -> Records:
        indices = [names.index(column) for column in wanted]
        lines = islice(text.lines(), layout.header_lines, None)
        for before, _, fields in layout.records(lines, text.longest):
            number = layout.header_lines + before + 1
            yield number, fields if isinstance(fields, Fault) else [fields[index] for index in indices]

    form = (Message("TSV with quoted fields") if quoted else "TSV") if delimiter == "\t" else "CSV"
    return Table(names, form, text.encoding, "line", read, delimited=layout)


def delimiter_in(line: str) -> str:
    """The delimiter of a table with this header: a tab, else a comma, a semicolon or a bar, whichever is there."""
    return next((mark for mark in "\t,;|" if mark in line), ",")


def header_in(lines: Sequence[str]) -> tuple[str, ...]:
    """The fields of the first line, if it can be a header: most lines have as many. Else ()."""
    first = next(filter(str.strip, lines), "")
    ended_lines = (f"{line}\n" for line in lines)
    rows = [
        fields
        for *_, fields in _fields(ended_lines, delimiter_in(first), True, LONGEST)
        if not isinstance(fields, Fault)
    ]
    num_alike = sum(len(row) == len(rows[0]) for row in rows)
    return tuple(rows[0]) if 2 * num_alike > len(rows) else ()


def _fields(lines: Iterable[str], delimiter: str, quoted: bool, longest: int) -> _Fields:
    """Each non-blank record."""
    if quoted:
        for before, record, fields in _csv_records(lines, longest, delimiter):
            if isinstance(fields, Fault) or len(fields) > 1 or record.strip():
                yield before, record, fields
        return
    for before, line in enumerate(lines):
        if delimiter in line or line.strip():
            record = line.rstrip("\r\n")
            if _QUOTED.fullmatch(record):  # a program put quotes around all of it, as around a field
                record = record[1:-1].replace('""', '"')
            yield before, line, record.split(delimiter)


def _csv_records(lines: Iterable[str], longest_field: int, delimiter: str) -> _Fields:
    """Yields the number of lines before each record, its text, and its fields; blank records, too.

    lines: with their ends; no more of them are read than the record needs. A line is a record of its own, with a fault
    for fields, if a quoted field in it does not end or goes on after its quote, if a carriage return stands outside
    quotes, or if a field is longer than `longest_field` characters; the next record then begins at the line after it.
    """
    source = iter(lines)
    unread_lines: deque[str] = deque()  # lines after one with a mistaken quote, to be read again
    record_lines: list[str] = []  # lines of the record that is read

    def feed() -> Iterator[str]:
        while (line := unread_lines.popleft() if unread_lines else next(source, "")) != "":
            record_lines.append(line)
            yield line

    before = 0
    reader = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        limit = csv.field_size_limit(longest_field)  # the process's; changed only while a record is read
        try:
            fields: list[str] | Fault = next(reader)
        except StopIteration:
            return
        except csv.Error:  # only the first line is at fault
            unread_lines.extendleft(reversed(record_lines[1:]))
            del record_lines[1:]
            reader = csv.reader(feed(), delimiter=delimiter, strict=True)
            fields = Fault("bad_quotes", _MALFORMED, raw=record_lines[0])
            if len(record_lines[0]) > longest_field:  # a field of many short lines has a quote that does not end
                fields = fields._replace(
                    reason="too_long", what=Message("is longer than {longest:,} characters", longest=longest_field)
                )
        finally:
            csv.field_size_limit(limit)
        text = "".join(record_lines)
        number = len(record_lines)
        record_lines.clear()
        yield before, text, fields
        before += number


def are_quoted(lines: Iterable[str], delimiter: str = "\t", longest: int = LONGEST) -> bool:
    """Whether a TSV file was written by a program that quotes fields, so that quotes are not part of the text.

    Such a program (pandas, Excel, Python's csv) quotes every field that contains a quote, a tab or a line end, and
    doubles the quotes inside. So each record with a quote votes, as `_vote` says. Quotes are honoured if more records
    vote for than against, or if the whole first line is quoted.
    """
    records = _csv_records(lines, longest, delimiter)
    first = next((text.rstrip("\r\n") for _, text, _ in records if text.strip()), "")
    header = first.split(delimiter)
    if all(len(column) > 1 and _QUOTED.fullmatch(column) for column in header):
        return True
    voters = islice(((text, fields) for _, text, fields in records if '"' in text), _VOTES)
    return sum(_vote(text.rstrip("\r\n"), fields, delimiter, len(header)) for text, fields in voters) > 0


def _vote(record: str, fields: list[str] | Fault, delimiter: str, width: int) -> int:
    """1 for quoting, -1 against, 0 for a quoted field that needs no quotes. fields: of the record, parsed as CSV."""
    if isinstance(fields, Fault):
        return -1
    lines = [line.split(delimiter) for line in record.split("\n")]
    if any(len(line) != width for line in lines):  # without tabs or line ends in quotes they are not as many
        return int(len(fields) == width)
    if not all(_QUOTED.fullmatch(field) for field in lines[0] if '"' in field):
        return -1
    return int(any('""' in field[1:-1] for field in lines[0]))
