"""Converts files in other encodings to streams of UTF-8. Undecodable bytes are preserved, never replaced."""

import codecs
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from itertools import chain

from korbert.errors import CorpusError
from korbert.records.frames import File, as_file, open_bytes

__all__ = ["HEAD_BYTES", "UNDECODABLE", "encoding_in", "encoding_of", "utf8"]

HEAD_BYTES = 1 << 20  # of a file, from which its encoding is detected
UNDECODABLE = re.compile("[\udc80-\udcff]")  # undecodable bytes, as surrogateescape represents them
_READ_BYTES = 1 << 18
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_ASCII = re.compile(rb"[\x80-\xff]")


def encoding_of(path: File) -> str:
    """utf-8, cp949 (which includes EUC-KR) or utf-16, detected from the beginning of the file: see encoding_in."""
    with open_bytes(path) as file:
        return encoding_in(file.read(HEAD_BYTES))


def encoding_in(head: bytes) -> str:
    """The encoding of a file that begins so.

    A UTF-8 file with some broken lines stays UTF-8: CP949 requires a quarter of non-ASCII bytes to be invalid UTF-8.
    """
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    in_utf8, in_cp949 = (len(UNDECODABLE.findall(head.decode(name, "surrogateescape"))) for name in ("utf-8", "cp949"))
    if in_utf8 > in_cp949 and 4 * in_utf8 >= len(_NOT_ASCII.findall(head)):
        return "cp949"
    return "utf-8"


def utf8(file: BufferedReader, encoding: str, path: File) -> AbstractContextManager[BufferedReader]:
    """The stream as UTF-8. Bytes that are invalid in another encoding become encoded lone surrogates."""
    return nullcontext(file) if encoding == "utf-8" else as_file(_transcoded(file, encoding, path), file)


def _transcoded(file: BufferedReader, encoding: str, path: File) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    blocks = iter(lambda: file.read(_READ_BYTES), b"")
    try:
        for block in chain(blocks, [b""]):
            yield decoder.decode(block, final=not block).encode("utf-8", "surrogatepass")
    except UnicodeError as error:  # of UTF-16, where no single byte can be escaped
        cause = error.reason if isinstance(error, UnicodeDecodeError) else error
        raise CorpusError(f"{path}: is not {encoding.upper()} ({cause}): set encoding of its source") from error
