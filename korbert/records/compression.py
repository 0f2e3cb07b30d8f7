"""Files as streams of bytes, decompressed if needed. A compressed file that is truncated or damaged is an error.

Neither `zstandard` nor a plain loop over `zlib` reports that the last frame (gzip: member; bzip2, xz: stream) is
truncated: they report the end of the file. Here each frame has to reach its own end. Frames are numbered for messages.
"""

import bz2
import io
import lzma
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from korbert.errors import CorpusError
from korbert.messages import argument
from korbert.system import package

if TYPE_CHECKING:
    from upath import UPath

File: TypeAlias = "Path | UPath"  # local, or at an address that fsspec opens

_READ_BYTES = 1 << 16
_STEP_BYTES = 1 << 10  # compressed, read at a time: four bytes of zstd may stand for 128 KiB
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
    """The file as it is. Raises CorpusError if it is missing or unreadable, or a device, which may never end."""
    try:
        if isinstance(path, Path) and stat.S_ISCHR(path.stat().st_mode) and str(path) != "/dev/stdin":
            raise CorpusError("{path}: is a device: name a file, a pipe, or - for standard input", path=path)
        return path.open("rb")
    except FileNotFoundError:
        raise CorpusError(
            "{path}: no such file: check the source's path in the recipe and {option}",
            path=path,
            option=argument("data"),
        ) from None
    except OSError as error:
        raise CorpusError(
            "{path}: cannot be opened ({strerror}): check that it is a file you may read",
            path=path,
            strerror=error.strerror,
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


PACKED: Mapping[str, Callable[[], Any]] = {  # suffix -> a decoder of one frame
    # Imported only here: a submission runs without zstandard.
    ".zst": lambda: (
        package("zstandard", "a .zst file").ZstdDecompressor(max_window_size=_LARGEST_WINDOW_BYTES).decompressobj()
    ),
    ".gz": lambda: zlib.decompressobj(_GZIP_WBITS),
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}
_LIMITS = dict.fromkeys((".bz2", ".xz"), (1 << 22,))  # bytes of a block; the others have no such argument
_PADDED = (".gz", ".xz")  # may have zeros between frames, from tapes and some tools


def _unpack(file: BinaryIO, path: File) -> Iterator[bytes]:
    """The decompressed blocks of all frames."""
    suffix = path.suffix.lower()
    frame = 1
    data = file.read(_STEP_BYTES)
    while data or frame == 1:
        decoder = PACKED[suffix]()
        is_hungry = True
        while not decoder.eof:
            if not data and is_hungry:
                raise CorpusError(
                    "{path}: ends inside frame {frame}: the file is cut off, get it again", path=path, frame=frame
                )
            try:
                block = decoder.decompress(data, *_LIMITS.get(suffix, ()))
            except Exception as error:  # each library has errors of its own
                raise CorpusError(
                    "{path}: frame {frame} is damaged ({error}): get the file again",
                    path=path,
                    frame=frame,
                    error=error,
                ) from error
            yield block
            is_hungry = decoder.eof or getattr(decoder, "needs_input", True)
            data = decoder.unused_data or (file.read(_STEP_BYTES) if is_hungry else b"")
        while suffix in _PADDED and data and not (data := data.lstrip(b"\0")):
            data = file.read(_STEP_BYTES)
        frame += 1
