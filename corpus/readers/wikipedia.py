"""Wikipedia dumps, pages-articles.xml as downloaded: pages cut from the stream, and their wikitext as prose."""

import re
from collections.abc import Iterator
from io import BufferedReader
from xml.etree import ElementTree

from korbert.corpus.readers.segments import Segment, SourceRow, faulty_row
from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.records import File

_READ_BYTES = 1 << 20
_BEGIN = b"<page>"
_END = b"</page>"
_PAGE = re.compile(rb"<page>.*?</page>", re.DOTALL)
_WIKITEXT = "wikitext"


def segments(file: BufferedReader, path: File, name: str, part_bytes: int, longest: int) -> Iterator[Segment]:
    """Whole pages, about `part_bytes` in a segment. Raises CorpusError if the file ends inside a page, or a page, which
    MediaWiki limits to 2 MiB, is so long that more than `part_bytes` + `longest` bytes are held."""
    first = 1
    buffer = bytearray()
    searched = 0  # no page ends in `buffer` before this
    while data := file.read(_READ_BYTES):
        buffer += data
        end = buffer.rfind(_END, searched)
        searched = max(0, len(buffer) - len(_END))
        if end >= 0 and len(buffer) >= part_bytes:
            pages = bytes(buffer[: end + len(_END)])
            yield Segment(name, first, pages)
            first += pages.count(_END)
            del buffer[: len(pages)]
            searched = 0
        elif len(buffer) > part_bytes + longest:
            raise CorpusError(
                "{path}: page {page} does not end in {size:,} bytes: not a dump named pages-articles.xml, "
                "which kind wikipedia is for, or damaged: get it again",
                path=path,
                page=first + buffer.count(_END),
                size=len(buffer),
            )
    if buffer.rfind(_BEGIN) > buffer.rfind(_END):
        raise CorpusError(
            "{path}: ends inside page {page}: the file is cut off, get it again",
            path=path,
            page=first + buffer.count(_END),
        )
    if _END in buffer:
        yield Segment(name, first, bytes(buffer))
    elif first == 1:
        raise CorpusError("{path}: no <page> in there: kind wikipedia is for dumps named pages-articles.xml", path=path)


def rows(segment: Segment) -> Iterator[SourceRow]:
    """The pages of a segment, with their wikitext. Redirects and pages outside the article namespace are faulty."""
    assert isinstance(segment.data, bytes)
    for number, match in enumerate(_PAGE.finditer(segment.data), segment.first):
        yield _row(match[0], f"{segment.file} page {number}")


def _row(data: bytes, place: str) -> SourceRow:
    try:
        page = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        return faulty_row(place, None, data.decode(errors="backslashreplace"), "bad_xml", str(error))
    title, namespace, page_id = (page.findtext(name, "") for name in ("title", "ns", "id"))
    place = f"{place} ({title})"
    revision = page.find("revision")
    text = None if revision is None else revision.findtext("text")
    if not page_id.isdecimal():
        fault = Message("<id> is {id!r}, not a whole number", id=page_id)
        return faulty_row(place, None, title, "bad_id", fault)
    if namespace != "0":
        return faulty_row(place, page_id, title, "not_an_article", Message("namespace {number}", number=namespace))
    if (redirect := page.find("redirect")) is not None:
        return faulty_row(place, page_id, title, "redirect", Message("to {title}", title=redirect.get("title")))
    if text is None or (revision is not None and revision.findtext("model", _WIKITEXT) != _WIKITEXT):
        return faulty_row(place, page_id, title, "bad_text", Message("no wikitext in its revision"))
    return SourceRow(place, page_id, text)


def parse_page(row: SourceRow) -> SourceRow:
    """The row of a page with its wikitext as prose; faulty if that cannot be parsed.

    Two entities that are a surrogate pair become its character, half a pair becomes U+FFFD.
    """
    from korbert.corpus.readers import wikitext  # not at the top: only this kind of source needs the parser

    if row.reason is not None:
        return row
    try:
        prose = wikitext.prose(row.text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return SourceRow(row.place, row.id, prose)
    except RecursionError:
        fault = Message("its wikitext is nested too deep to be parsed")
        return faulty_row(row.place, row.id, row.text, "bad_text", fault)
