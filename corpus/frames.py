"""Files as streams of bytes, packed or not. A packed file that ends early or is damaged is found out.

Neither `zstandard` nor a plain loop over `zlib` says anything when the last frame (gzip: member) is cut off: they
report the end of the file. So each frame is followed to its own end here, and counted for the error's text.
"""

import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard

from korbert.errors import CorpusError

__all__ = ["open_bytes"]

_READ_BYTES = 1 << 16
_MOST_BLOCK_BYTES = 1 << 22  # unpacked at once
_LARGEST_WINDOW_BYTES = 1 << 31  # zstd --long=31, the largest there is
_GZIP_WBITS = 31  # zlib: gzip header and checksum


def open_bytes(path: Path) -> io.BufferedReader:
    """The unpacked content of a file; .zst and .gz by the end of its name, several frames as one.

    Raises CorpusError where the file is absent or unreadable; reading raises it where a frame is cut or damaged.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file: check the source's path in the recipe and --data") from None
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be opened ({error.strerror}): check that it is a file you may read"
        ) from error
    if path.suffix == ".zst":
        return io.BufferedReader(_Stream(file, _unpack_zst(file, path)), _READ_BYTES)
    if path.suffix == ".gz":
        return io.BufferedReader(_Stream(file, _unpack_gz(file, path)), _READ_BYTES)
    return file


class _Stream(io.RawIOBase):
    """Blocks of bytes as something to read from."""

    def __init__(self, file: BinaryIO, blocks: Iterator[bytes]) -> None:
        self._file = file
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # all that BufferedReader gives
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _unpack_zst(file: BinaryIO, path: Path) -> Iterator[bytes]:
    frame = 1
    data = file.read(_READ_BYTES)
    if not data:
        raise _cut(path, frame)
    while data:
        decoder = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW_BYTES).decompressobj()
        while not decoder.eof:
            if not data:
                raise _cut(path, frame)
            try:
                yield decoder.decompress(data)
            except zstandard.ZstdError as error:
                raise _damaged(path, frame, error) from error
            data = decoder.unused_data if decoder.eof else file.read(_READ_BYTES)
        data = data or file.read(_READ_BYTES)
        frame += 1


def _unpack_gz(file: BinaryIO, path: Path) -> Iterator[bytes]:
    frame = 1
    data = file.read(_READ_BYTES)
    if not data:
        raise _cut(path, frame)
    while data:
        decoder = zlib.decompressobj(_GZIP_WBITS)
        while not decoder.eof:
            if not data:
                raise _cut(path, frame)
            try:
                yield decoder.decompress(data, _MOST_BLOCK_BYTES)
            except zlib.error as error:
                raise _damaged(path, frame, error) from error
            data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail or file.read(_READ_BYTES)
        data = _without_padding(data, file)
        frame += 1


def _without_padding(data: bytes, file: BinaryIO) -> bytes:
    """What follows a gzip member: the next one, after any zeros that tapes and some tools pad with."""
    while not (data := data.lstrip(b"\0")):
        data = file.read(_READ_BYTES)
        if not data:
            return b""
    return data


def _cut(path: Path, frame: int) -> CorpusError:
    return CorpusError(f"{path}: ends inside frame {frame}: the file is cut off, get it again")


def _damaged(path: Path, frame: int, error: Exception) -> CorpusError:
    return CorpusError(f"{path}: frame {frame} is damaged ({error}): get the file again")
