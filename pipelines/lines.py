"""Lines of a file or a pipe, in bounded memory and as soon as they arrive; lines of JSON to write."""

import codecs
import json
import select
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from korbert.errors import CorpusError, SettingsError

__all__ = ["LONGEST", "Line", "as_json", "batches", "checked", "decoded", "texts"]

LONGEST = 1 << 20  # bytes of a line; the rest is skipped
_BATCH_LINES, _BATCH_BYTES = 2_048, 1 << 20
_CHUNK = 1 << 16
_BOM = codecs.BOM_UTF8


class Line(NamedTuple):
    """number: from 1. data: without the line end. cut: the line is longer than LONGEST, data is its beginning."""

    number: int
    data: bytes
    cut: bool


def batches(file: IO[bytes]) -> Iterator[list[Line]]:
    """All lines, some thousand at a time; from a pipe those that have arrived, so that a slow writer gets answers."""
    batch: list[Line] = []
    size, number = 0, 1
    held, cut = bytearray(), False
    while chunk := _read(file):
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


def _read(file: IO[bytes]) -> bytes:
    """The bytes that have arrived, at most a chunk; waits for the first one. Empty at the end."""
    read = getattr(file, "read1", file.read)
    chunk: bytes = read(_CHUNK)
    return chunk


def _more_is_there(file: IO[bytes]) -> bool:
    """Whether reading would not wait; True where that is unknown."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError, TypeError):
        return True


def _line(number: int, data: bytearray, cut: bool) -> Line:
    whole = bytes(data).removeprefix(_BOM) if number == 1 else bytes(data)
    return Line(number, whole if cut else whole.rstrip(b"\r"), cut)


def decoded(line: Line) -> str:
    """Its text. Raises CorpusError where it is not UTF-8; the caller adds the place."""
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
    """As `texts`, for command line arguments, which have lone surrogates where they were not UTF-8."""
    for number, text in enumerate(arguments, 1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise SettingsError(f"text {number}: character {error.start + 1} is not UTF-8: {text[:40]!a}") from None
    return [(f"text {number}", text) for number, text in enumerate(arguments, 1)]


def as_json(value: Any) -> bytes:
    """A line of JSON in UTF-8, whatever the terminal's encoding; lone surrogates are escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
