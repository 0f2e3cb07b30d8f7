"""Lines of a file or pipe in bounded memory, as soon as they arrive."""

import codecs
import select
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import IO, NamedTuple

LONGEST = 1 << 20  # bytes of a line
_BATCH_LINES = 8_192
_BATCH_BYTES = 1 << 20
_CHUNK = 1 << 16
_MAX_OVERHANG = 1 << 24  # bytes of a record beyond its block; a longer one has a mistaken quote


class Line(NamedTuple):
    """number: from 1. data: without the line end; only the beginning of a line that is too long. size: in bytes."""

    number: int
    data: bytes
    size: int

    @property
    def cut(self) -> bool:
        return self.size > len(self.data)

    @property
    def text(self) -> str:
        """Its text, without a carriage return at its end. UnicodeDecodeError if a byte cannot be decoded."""
        if not self.cut:
            return self.data.decode().rstrip("\r")
        return codecs.getincrementaldecoder("utf-8")().decode(self.data)


def batches(file: IO[bytes], longest: int = LONGEST) -> Iterator[list[Line]]:
    """All lines, in batches; the first one without a byte-order mark. Of a line of more bytes than `longest`, the rest
    is skipped.

    From a pipe, a batch is what has arrived, so that a slow writer gets answers.
    """
    batch: list[Line] = []
    size = 0
    number = 1
    pending = bytearray()  # the beginning of a line whose end has not arrived
    num_skipped = 0  # bytes of that line beyond `longest`
    read = getattr(file, "read1", file.read)  # read1 returns the bytes that have arrived, and waits only for the first
    while chunk := read(_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            if pending or len(part) > longest:
                num_skipped += max(0, len(pending) + len(part) - longest)
                part = bytes(pending + part[: longest - len(pending)])
                pending.clear()
            batch.append(_line(number, part, num_skipped))
            size += len(part)
            number += 1
            num_skipped = 0
            if len(batch) >= _BATCH_LINES or size >= _BATCH_BYTES:
                yield batch
                batch = []
                size = 0
        num_skipped += max(0, len(pending) + len(rest) - longest)
        pending += rest[: longest - len(pending)]
        if batch and not _more_is_there(file):
            yield batch
            batch = []
            size = 0
    if pending:
        batch.append(_line(number, bytes(pending), num_skipped))
    if batch:
        yield batch


def blocks(
    file: BufferedReader, size: int, longest: int, ends_inside: Callable[[bytes, bool], bool] | None = None
) -> Iterator[Line]:
    """Yields blocks of whole lines with their ends, of more than `size` bytes unless the file ends before.

    A line of more than `longest` bytes is a block of its own, and cut. The number of a block is that of its first line.
    longest: at least `size`. ends_inside: takes lines, and whether they begin inside a record; returns whether they end
    inside one. If so, more lines are added to the block, until they are _MAX_OVERHANG bytes.
    """
    number = 1
    while piece := file.read(size) + file.readline(longest + 1):
        pieces = [piece]
        is_inside = False
        overhang = 0
        while ends_inside is not None and (is_inside := ends_inside(piece, is_inside)) and overhang < _MAX_OVERHANG:
            if not (line := file.readline(longest + 1)):
                break
            pieces.append(piece := line)
            overhang += len(line)
        data = b"".join(pieces)
        data = data.removeprefix(codecs.BOM_UTF8) if number == 1 else data
        begin = data.rfind(b"\n", 0, -1) + 1  # of the last line, as no other one may be too long
        rest = len(data) - begin - data.endswith(b"\n")
        if rest <= longest:
            yield Line(number, data, len(data))
            number += data.count(b"\n")
            continue
        if begin:
            yield Line(number, data[:begin], begin)
            number += data.count(b"\n", 0, begin)
        while not piece.endswith(b"\n") and (piece := file.readline(_CHUNK)):
            rest += len(piece) - piece.endswith(b"\n")
        yield Line(number, data[begin : begin + longest], rest)
        number += 1


def _more_is_there(file: IO[bytes]) -> bool:
    """Whether a read would return at once; True if unknown."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError, TypeError):
        return True


def _line(number: int, data: bytes, skipped: int) -> Line:
    data = data.removeprefix(codecs.BOM_UTF8) if number == 1 else data
    return Line(number, data, len(data) + skipped)
