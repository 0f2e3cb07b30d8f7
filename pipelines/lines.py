"""Reads lines of a file or pipe in bounded memory, as soon as they arrive; writes JSON lines."""

import codecs
import json
import select
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from korbert.errors import CorpusError, SettingsError

__all__ = ["LONGEST", "Line", "as_json", "batches", "checked", "decoded", "texts"]

LONGEST = 1 << 20  # bytes of a line; the rest is skipped
_BATCH_LINES, _BATCH_BYTES = 8_192, 1 << 20
_CHUNK = 1 << 16
_BOM = codecs.BOM_UTF8


class Line(NamedTuple):
    """number: from 1. data: without the line end. cut: the line is longer than LONGEST and data is its beginning."""

    number: int
    data: bytes
    cut: bool


def batches(file: IO[bytes]) -> Iterator[list[Line]]:
    """All lines, in batches. From a pipe, a batch is what has arrived, so that a slow writer gets answers."""
    batch: list[Line] = []
    size, number = 0, 1
    held, cut = bytearray(), False
    read = getattr(file, "read1", file.read)  # read1 returns the bytes that have arrived, and waits only for the first
    while chunk := read(_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            cut = cut or len(held) + len(part) > LONGEST
            held += part[: LONGEST - len(held)]
            batch.append(_line(number, held, cut))
            size += len(held)
            number, held, cut = number + 1, bytearray(), False
            if len(batch) >= _BATCH_LINES or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
        cut = cut or len(held) + len(rest) > LONGEST
        held += rest[: LONGEST - len(held)]
        if batch and not _more_is_there(file):
            yield batch
            batch, size = [], 0
    if held:
        batch.append(_line(number, held, cut))
    if batch:
        yield batch


def _more_is_there(file: IO[bytes]) -> bool:
    """Whether a read would return at once; True if unknown."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError, TypeError):
        return True


def _line(number: int, data: bytearray, cut: bool) -> Line:
    whole = bytes(data).removeprefix(_BOM) if number == 1 else bytes(data)
    return Line(number, whole if cut else whole.rstrip(b"\r"), cut)


def decoded(line: Line) -> str:
    """The text of a line. Raises CorpusError if it is not UTF-8; the caller adds file and line."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(line.data, final=not line.cut)
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"byte {error.start + 1} is not UTF-8: {line.data[:40]!r}: convert it, as with iconv -f cp949"
        ) from None


def texts(file: IO[bytes], name: str) -> Iterator[tuple[str, str]]:
    """Place ("reviews.txt: line 3") and text of each line. Raises CorpusError for a line too long or not UTF-8."""
    for batch in batches(file):
        for line in batch:
            place = f"{name}: line {line.number}"
            if line.cut:
                raise CorpusError(f"{place}: is longer than {LONGEST:,} bytes: put it on several lines")
            try:
                yield place, decoded(line)
            except CorpusError as error:
                raise CorpusError(f"{place}: {error}") from None


def checked(arguments: tuple[str, ...]) -> list[tuple[str, str]]:
    """As `texts`, for command line arguments; lone surrogates show that an argument was not UTF-8."""
    for number, text in enumerate(arguments, 1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise SettingsError(f"text {number}: character {error.start + 1} is not UTF-8: {text[:40]!a}") from None
    return [(f"text {number}", text) for number, text in enumerate(arguments, 1)]


def as_json(value: Any) -> bytes:
    """One line of JSON in UTF-8, whatever the encoding of the terminal. Lone surrogates are escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
