"""The common form of all formats: a table whose records are read one by one, and text files as lines."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from korbert.errors import CorpusError
from korbert.records.encodings import HEAD_BYTES, encoding_in
from korbert.records.frames import open_bytes

__all__ = ["Fault", "Records", "Table", "TextFile", "open_text", "type_name"]

_NUL_SHARE = 0.2  # of the head of a file: in UTF-16 half of Latin text is NUL, a third of Korean text with markup
_JSON_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}


class Fault(NamedTuple):
    """Why a record is dropped. reason: in snake_case, for counting. what: the details, for messages."""

    reason: str
    what: str


Records: TypeAlias = Iterator[tuple[int, list[Any] | Fault]]
"""Number of each record (from 1), and its cells or fault."""


@dataclass(frozen=True)
class Table:
    """A labelled file.

    form: its format, for messages. encoding: of its text, "" if the format fixes it. unit: what record numbers count,
    "line" or "record". read: iterates over records from the start, with the cells of the given columns.
    """

    columns: tuple[str, ...]
    form: str
    encoding: str
    unit: str
    read: Callable[[Sequence[str]], Records]


@dataclass(frozen=True)
class TextFile:
    """A text file, and how its bytes are decoded. line_end: CR if the file has no LF, as on old Macs."""

    path: Path
    encoding: str
    line_end: str

    def lines(self) -> Iterator[str]:
        """The lines, with their ends. Undecodable bytes become lone surrogates; a byte-order mark is removed."""
        codec = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with io.TextIOWrapper(open_bytes(self.path), codec, "surrogateescape", self.line_end) as file:
            try:
                yield from file
            except UnicodeError as error:  # UTF-16, where single bytes cannot be escaped
                cause = error.reason if isinstance(error, UnicodeDecodeError) else error
                raise CorpusError(f"{self.path}: is no {self.encoding.upper()} ({cause}): save it as UTF-8") from error


def open_text(path: Path) -> TextFile:
    """Detects encoding and line ends. Raises CorpusError for an empty file, and for UTF-16 without a BOM."""
    with open_bytes(path) as file:
        head = file.read(HEAD_BYTES)
    encoding = encoding_in(head)
    if not head.removeprefix(b"\xef\xbb\xbf").removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff").strip():
        raise CorpusError(f"{path}: is empty: give a file with rows")
    if encoding != "utf-16" and head.count(b"\0") > _NUL_SHARE * len(head):
        raise CorpusError(f"{path}: has a NUL byte in most characters, as UTF-16 without its mark: save it as UTF-8")
    return TextFile(path, encoding, "\r" if b"\r" in head and b"\n" not in head else "\n")


def type_name(value: object) -> str:
    """The type of a JSON value, in words."""
    return _JSON_NAMES.get(type(value), "a number")
