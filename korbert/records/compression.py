"""Files as streams of bytes, decompressed if needed. A compressed file that is truncated or damaged is an error.

Neither `zstandard` nor a plain loop over `zlib` reports that the last frame (gzip: member; bzip2, xz: stream) is
truncated: they report the end of the file. Here each frame has to reach its own end. Frames are numbered for messages.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeAlias

from korbert.errors import CorpusError

if TYPE_CHECKING:
    from upath import UPath

File: TypeAlias = "Path | UPath"  # local, or at an address that fsspec opens

_READ_BYTES = 1 << 16
_MAX_BLOCK_BYTES = 1 << 22  # decompressed at a time
_GZIP_BYTES = 1 << 12  # compressed, at a time: a byte may stand for 1,032
_ZSTD_BYTES = 1 << 10  # compressed, at a time: four bytes may stand for 128 KiB
_LARGEST_WINDOW_BYTES = 1 << 31  # zstd --long=31, the maximum
_GZIP_WBITS = 31  # zlib: gzip header and checksum


def open_bytes(path: File) -> io.BufferedReader:
    """The content of a file, decompressed if its name ends in .zst, .gz, .bz2 or .xz; its frames are concatenated.

    Raises CorpusError if the file is missing or unreadable; reading raises it if a frame is truncated or damaged.
    """
    file = open_file(path)
    if path.suffix.lower() in PACKED:
        return as_file(_unpack(file, path), file)
    return file if isinstance(file, io.BufferedReader) else as_file(iter(lambda: file.read(_READ_BYTES), b""), file)


def open_file(path: File) -> BinaryIO:
    """The file as it is. Raises CorpusError if it is missing or unreadable."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file: check the source's path in the recipe and --data") from None
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be opened ({error.strerror}): check that it is a file you may read"
        ) from error


def as_file(blocks: Iterator[bytes], under: BinaryIO) -> io.BufferedReader:
    """Blocks of bytes as a readable file. under: the file they come from, closed with it."""
    return io.BufferedReader(_Stream(under, blocks), _READ_BYTES)


class _Stream(io.RawIOBase):
    """Blocks of bytes as a raw stream."""

    def __init__(self, file: BinaryIO, blocks: Iterator[bytes]) -> None:
        self._file = file
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # BufferedReader passes these two
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


Data: TypeAlias = bytes | memoryview


class _Decoder(Protocol):
    """The decoder of one frame. rest: unused input. hungry: it needs more input to go on."""

    eof: bool
    rest: Data
    hungry: bool

    def step(self, data: Data) -> bytes: ...


class _Piecewise:
    """zlib and zstandard. Their output is not bounded, so they get little input at a time."""

    hungry = True

    def __init__(self, decoder: Any, size: int, error: type[Exception]) -> None:
        self._decoder, self._size, self._error = decoder, size, error
        self.eof = False
        self.rest: Data = b""

    def step(self, data: Data) -> bytes:
        try:
            block: bytes = self._decoder.decompress(data[: self._size])
        except self._error as error:
            raise ValueError(str(error)) from error
        self.eof = self._decoder.eof
        self.rest = data[self._size :]
        if self.eof:
            self.rest = b"".join((self._decoder.unused_data, self.rest))
        return block


class _Buffered:
    """bz2 and lzma, which buffer their input."""

    def __init__(self, decoder: "bz2.BZ2Decompressor | lzma.LZMADecompressor") -> None:
        self._decoder = decoder
        self.eof, self.hungry = False, True
        self.rest: Data = b""

    def step(self, data: Data) -> bytes:
        block = self._decoder.decompress(data, _MAX_BLOCK_BYTES)
        self.eof = self._decoder.eof
        self.rest = self._decoder.unused_data if self.eof else b""
        self.hungry = not self.eof and self._decoder.needs_input
        return block


def _zstd() -> _Decoder:
    import zstandard  # not at the top: a submission runs without it

    decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW_BYTES)
    return _Piecewise(decompressor.decompressobj(), _ZSTD_BYTES, zstandard.ZstdError)


PACKED: Mapping[str, Callable[[], _Decoder]] = {  # by suffix
    ".zst": _zstd,
    ".gz": lambda: _Piecewise(zlib.decompressobj(_GZIP_WBITS), _GZIP_BYTES, zlib.error),
    ".bz2": lambda: _Buffered(bz2.BZ2Decompressor()),
    ".xz": lambda: _Buffered(lzma.LZMADecompressor(lzma.FORMAT_XZ)),
}
_PADDED = (".gz", ".xz")  # may have zeros between frames, from tapes and some tools
_ERRORS = (lzma.LZMAError, OSError, ValueError)  # bz2 raises the last two


def _unpack(file: BinaryIO, path: File) -> Iterator[bytes]:
    """The decompressed blocks of all frames."""
    frame = 1
    data: Data = memoryview(file.read(_READ_BYTES))
    if not data:
        raise _cut(path, frame)
    while data:
        decoder = PACKED[path.suffix.lower()]()
        while not decoder.eof:
            if not data and decoder.hungry and not (data := memoryview(file.read(_READ_BYTES))):
                raise _cut(path, frame)
            try:
                block = decoder.step(data)
            except _ERRORS as error:
                raise CorpusError(f"{path}: frame {frame} is damaged ({error}): get the file again") from error
            yield block
            data = decoder.rest
        data = bytes(data) or file.read(_READ_BYTES)
        while path.suffix.lower() in _PADDED and data and not (data := data.lstrip(b"\0")):
            data = file.read(_READ_BYTES)
        frame += 1


def _cut(path: File, frame: int) -> CorpusError:
    return CorpusError(f"{path}: ends inside frame {frame}: the file is cut off, get it again")
