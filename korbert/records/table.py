"""The common form of all formats: a table whose records are read one by one, and text files as lines."""

import codecs
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import TextIOWrapper
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.names import BLANK, did_you_mean
from korbert.records.compression import File, open_bytes
from korbert.records.encodings import HEAD_BYTES, encoding_in, errors_of, utf8
from korbert.records.lines import LONGEST

if TYPE_CHECKING:
    from korbert.records.delimited import Delimited

_LOOKED_AT = 100  # records whose cells tell what the columns hold
_HEAD_LINES = 200
_BLOCK_CHARS = 1 << 16
BLANK_BYTES = codecs.BOM_UTF8 + codecs.BOM_UTF16 + b"\0 \t\r\n"  # of which a file without content consists
_NUL_SHARE = 0.2  # of the head of a file: in UTF-16 half of Latin text is NUL, a third of Korean text with markup
_JSON_NAMES = {
    dict: Message("an object"),
    list: Message("a list"),
    str: Message("a text"),
    bool: Message("a truth value"),
    int: Message("a number"),
    float: Message("a number"),
    type(None): Message("null"),
}


class Fault(NamedTuple):
    """Why a record is dropped.

    reason: in snake_case, for counting. what: the details, for messages. record: its fields, if only its labels are at
    fault. raw: its text, if it is not a record at all.
    """

    reason: str
    what: str
    record: Any = None
    raw: str = ""


Records: TypeAlias = Iterator[tuple[int, list[Any] | Fault]]
"""Number of each record (from 1), and its cells or fault."""

Columns: TypeAlias = Sequence[str]

Cells: TypeAlias = Mapping[str, Sequence[Any]]
"""Column -> its cells in the first records that are not empty."""


def is_empty(cell: object) -> bool:
    """Whether a cell is None, NaN, or has no visible character. `NA` and `null` are texts, an empty list is a list."""
    if isinstance(cell, str):
        return not cell.strip(BLANK)
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


@dataclass(frozen=True)
class Table:
    """A file of records.

    form: its format, for messages. encoding: of its text, "" if the format fixes it. unit: what record numbers count,
    "line", "row" or "record". read: iterates over records from the start, with the cells of the given columns.
    objects: the same as JSON values or faults, where each record names its own columns. delimited: how CSV or TSV is.
    batches: of Parquet and Arrow, as pyarrow.RecordBatch with the given columns; arrow.rows_in reads them. notes: what
    people may not expect of the file.
    """

    columns: tuple[str, ...]
    form: str
    encoding: str
    unit: str
    read: Callable[[Sequence[str]], Records]
    objects: Callable[[], Iterator[tuple[int, Any]]] | None = None
    delimited: "Delimited | None" = None
    batches: Callable[[Sequence[str]], Iterator[Any]] | None = None
    notes: tuple[str, ...] = ()

    def records(self, wanted: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Number of each record, and its fields or fault.

        wanted: of these columns, unless each record names its own; None: of all that are not a field of another.
        """
        if self.objects:
            yield from self.objects()
            return
        if wanted is None:
            wanted = [column for column in self.columns if column.rpartition(".")[0] not in set(self.columns) - {""}]
        for number, cells in self.read(wanted):
            yield number, cells if isinstance(cells, Fault) else dict(zip(wanted, cells, strict=True))

    @cached_property
    def first(self) -> Cells:
        """The cells of the first hundred records, without empty ones: they tell what the columns hold."""
        cells: dict[str, list[Any]] = {column: [] for column in self.columns}
        for _, record in islice(self.read(self.columns), _LOOKED_AT):
            if isinstance(record, Fault):
                continue
            for column, cell in zip(self.columns, record, strict=False):
                if not is_empty(cell):
                    cells[column].append(cell)
        return cells

    def place(self, file: str) -> str:
        """The file, and the sheet of a workbook: for messages on columns, which another sheet may have."""
        return f"{file} ({self.form}; --sheet names another)" if self.unit == "row" else file


@dataclass(frozen=True)
class TextFile:
    """A text file, and how its bytes are decoded.

    head: its first lines, without their ends. longest: characters of a quoted field of CSV.
    """

    path: File
    encoding: str
    head: tuple[str, ...]
    longest: int = LONGEST

    @contextmanager
    def open(self) -> Iterator[TextIO]:
        """Its content without a byte-order mark. Undecodable bytes become lone surrogates: see encodings.utf8."""
        with open_bytes(self.path) as unpacked, utf8(unpacked, self.encoding, self.path) as file:
            yield TextIOWrapper(file, "utf-8-sig", errors_of(self.encoding), newline="\n")

    def lines(self) -> Iterator[str]:
        """The lines, each with a line feed at its end."""
        with self.open() as file:
            for line in file:
                yield line if line.endswith("\n") else f"{line}\n"

    def blocks(self) -> Iterator[str]:
        """The content, in blocks that may end anywhere."""
        with self.open() as file:
            yield from iter(lambda: file.read(_BLOCK_CHARS), "")


def head_of(path: File) -> bytes:
    """The beginning of a file, unpacked. Raises CorpusError for a missing file."""
    if not path.exists():
        names = [sibling.name for sibling in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, names) or Message("check its name and folder")
        raise CorpusError("{path}: no such file: {hint}", path=path, hint=hint)
    with open_bytes(path) as file:
        return file.read(HEAD_BYTES)


def open_text(path: File) -> TextFile:
    """Detects encoding and line ends. Raises CorpusError for a missing or empty file, and for UTF-16 without a BOM."""
    return text_file(path, head_of(path))


def text_file(path: File, head: bytes, encoding: str = "auto", longest: int = LONGEST) -> TextFile:
    """As open_text, for a file whose beginning, `head`, has been read."""
    encoding, lines = beginning(head, encoding)
    if not head.strip(BLANK_BYTES):
        raise CorpusError("{path}: is empty: give a file with rows", path=path)
    if encoding != "utf-16" and head.count(b"\0") > _NUL_SHARE * len(head):
        raise CorpusError(
            "{path}: has a NUL byte in most characters, as UTF-16 without its mark: save it as UTF-8", path=path
        )
    if len(lines) == 1 and "\r" in lines[0]:
        raise CorpusError(
            "{path}: its lines end as on old Macs, in CR alone: convert it with tr '\\r' '\\n'", path=path
        )
    return TextFile(path, encoding, lines, longest)


def beginning(head: bytes, encoding: str = "auto") -> tuple[str, tuple[str, ...]]:
    """Returns the encoding and the first lines of a file that begins with `head`."""
    if encoding == "auto":
        encoding = encoding_in(head)
    without_mark = "utf-8-sig" if encoding == "utf-8" else encoding
    text = codecs.getincrementaldecoder(without_mark)("replace").decode(head)
    return encoding, tuple(line.rstrip("\r") for line in text.split("\n", _HEAD_LINES)[:_HEAD_LINES])


def type_name(value: object) -> Message:
    """The type of a value of JSON or of a table, in words."""
    return _JSON_NAMES.get(type(value), Message("a {type}", type=type(value).__name__))
