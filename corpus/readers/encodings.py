"""Files in other encodings as streams of UTF-8. A byte that cannot be decoded is carried through, never replaced."""

import codecs
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from itertools import chain

from corpus.readers.frames import as_file, open_bytes
from corpus.readers.records import UNDECODABLE, File
from korbert.errors import CorpusError

__all__ = ["encoding_of", "utf8"]

_HEAD_BYTES = 1 << 20  # of a file, by which its encoding is told
_READ_BYTES = 1 << 18
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_ASCII = re.compile(rb"[\x80-\xff]")


def encoding_of(path: File) -> str:
    """utf-8, cp949 (which holds EUC-KR) or utf-16, by the beginning of the file.

    Some broken lines do not make a file of UTF-8 one of CP949: a quarter of what is not ASCII would have to be wrong.
    """
    with open_bytes(path) as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    wrong, wrong_else = (len(UNDECODABLE.findall(head.decode(name, "surrogateescape"))) for name in ("utf-8", "cp949"))
    if wrong > wrong_else and 4 * wrong >= len(_NOT_ASCII.findall(head)):
        return "cp949"
    return "utf-8"


def utf8(file: BufferedReader, encoding: str, path: File) -> AbstractContextManager[BufferedReader]:
    """The stream as UTF-8. Bytes that are wrong in another encoding become lone surrogates, in what else is UTF-8."""
    return nullcontext(file) if encoding == "utf-8" else as_file(_transcoded(file, encoding, path), file)


def _transcoded(file: BufferedReader, encoding: str, path: File) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    blocks = iter(lambda: file.read(_READ_BYTES), b"")
    try:
        for block in chain(blocks, [b""]):
            yield decoder.decode(block, final=not block).encode("utf-8", "surrogatepass")
    except UnicodeError as error:  # UTF-16 has no single wrong bytes
        told = error.reason if isinstance(error, UnicodeDecodeError) else error
        raise CorpusError(f"{path}: is no {encoding.upper()} ({told}): set encoding of its source") from error
