"""Lines of a file or pipe in bounded memory, as soon as they arrive."""

import codecs
import select
from collections.abc import Iterator
from typing import IO, NamedTuple

from korbert.errors import CorpusError

__all__ = ["LONGEST", "TOO_LONG", "Line", "batches", "text_of"]

LONGEST = 1 << 20  # bytes of a line; the rest is skipped
TOO_LONG = f"is longer than {LONGEST:,} bytes"
_BATCH_LINES, _BATCH_BYTES = 8_192, 1 << 20
_CHUNK = 1 << 16


class Line(NamedTuple):
    """number: from 1. data: without the line end. cut: the line is longer than LONGEST and data is its beginning."""

    number: int
    data: bytes
    cut: bool


def batches(file: IO[bytes], end: bytes = b"\n") -> Iterator[list[Line]]:
    """All lines, in batches; the first one without a byte-order mark.

    From a pipe, a batch is what has arrived, so that a slow writer gets answers.
    """
    batch: list[Line] = []
    size, number = 0, 1
    held, cut = bytearray(), False
    read = getattr(file, "read1", file.read)  # read1 returns the bytes that have arrived, and waits only for the first
    while chunk := read(_CHUNK):
        *whole, rest = chunk.split(end)
        for part in whole:
            if held or len(part) > LONGEST:
                cut = cut or len(held) + len(part) > LONGEST
                part = bytes(held + part[: LONGEST - len(held)])
                held.clear()
            batch.append(Line(number, part if number > 1 else part.removeprefix(codecs.BOM_UTF8), cut))
            size += len(part)
            number, cut = number + 1, False
            if len(batch) >= _BATCH_LINES or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
        cut = cut or len(held) + len(rest) > LONGEST
        held += rest[: LONGEST - len(held)]
        if batch and not _more_is_there(file):
            yield batch
            batch, size = [], 0
    if held:
        data = bytes(held)
        batch.append(Line(number, data if number > 1 else data.removeprefix(codecs.BOM_UTF8), cut))
    if batch:
        yield batch


def _more_is_there(file: IO[bytes]) -> bool:
    """Whether a read would return at once; True if unknown."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError, TypeError):
        return True


def text_of(line: Line, encoding: str = "utf-8") -> str:
    """The text of a line, without a carriage return at its end. CorpusError if a byte cannot be decoded.

    encoding: of the file; its lines are UTF-8 (see encodings.utf8). The caller adds file and line to the error.
    """
    try:
        if not line.cut:
            return line.data.decode().rstrip("\r")
        return codecs.getincrementaldecoder("utf-8")().decode(line.data)
    except UnicodeDecodeError as error:
        do = ": convert it, as with iconv -f cp949" if encoding == "utf-8" else ": correct it"
        raise CorpusError(f"byte {error.start + 1} is not {encoding.upper()}: {line.data[:40]!r}{do}") from None
