"""Converts files in other encodings to streams of UTF-8. Undecodable bytes are preserved, never replaced."""

import codecs
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from itertools import chain

from korbert.errors import CorpusError
from korbert.records.compression import File, as_file

HEAD_BYTES = 1 << 20  # of a file, from which its encoding is detected
UNDECODABLE = re.compile("[\udc80-\udcff]")  # undecodable bytes, as surrogateescape represents them
_READ_BYTES = 1 << 18
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HANGUL = b"\xea\xeb\xec\xed"  # first bytes of syllables in UTF-8


def encoding_in(head: bytes) -> str:
    """Detects the encoding of a file that begins with `head`: utf-8, cp949 (which includes EUC-KR) or utf-16.

    A UTF-8 file with some broken lines stays UTF-8: CP949 requires a quarter of non-ASCII bytes to be invalid UTF-8,
    and more of them than bytes of Hangul in UTF-8, which CP949 rarely resembles.
    """
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    valid = head.decode("utf-8", "ignore").encode()
    in_utf8 = len(head) - len(valid)
    if in_utf8 <= 3 * (len(valid) - len(valid.translate(None, _HANGUL))):
        return "utf-8"
    in_cp949, in_ascii = (len(head) - len(head.decode(name, "ignore").encode(name)) for name in ("cp949", "ascii"))
    return "cp949" if in_utf8 > in_cp949 and 4 * in_utf8 >= in_ascii else "utf-8"


def utf8(file: BufferedReader, encoding: str, path: File) -> AbstractContextManager[BufferedReader]:
    """The stream as UTF-8. Bytes that are invalid in another encoding become encoded lone surrogates.

    Lone surrogates of UTF-16 stay. Reading raises CorpusError for UTF-16 that is cut off or has no byte-order mark.
    """
    return nullcontext(file) if encoding == "utf-8" else as_file(_transcode(file, encoding, path), file)


def decode_bytes(data: bytes, encoding: str) -> str:
    """Decodes bytes of a stream that `utf8` made. Undecodable bytes become U+DC80 to U+DCFF. encoding: of the file."""
    return data.decode(errors=errors_of(encoding))


def beginning_of(data: bytes, encoding: str) -> str:
    """As `decode_bytes`, for bytes that may end inside a character, which is left out."""
    return codecs.getincrementaldecoder("utf-8")(errors_of(encoding)).decode(data)


def errors_of(encoding: str) -> str:
    """Returns the error handler that decodes the stream of a file, so that an undecodable byte is a lone surrogate."""
    return "surrogateescape" if encoding == "utf-8" else "surrogatepass"


def _transcode(file: BufferedReader, encoding: str, path: File) -> Iterator[bytes]:
    # In UTF-16 no single byte can be escaped, but half a surrogate pair can be passed on.
    errors = "surrogatepass" if encoding == "utf-16" else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    blocks = iter(lambda: file.read(_READ_BYTES), b"")
    try:
        for block in chain(blocks, [b""]):
            yield decoder.decode(block, final=not block).encode("utf-8", "surrogatepass")
    except UnicodeError as error:  # of UTF-16 that is cut off or has no byte-order mark
        cause = error.reason if isinstance(error, UnicodeDecodeError) else error
        raise CorpusError(
            "{path}: is not {upper} ({cause}): save it as UTF-8, or set encoding of its source",
            path=path,
            upper=encoding.upper(),
            cause=cause,
        ) from error
