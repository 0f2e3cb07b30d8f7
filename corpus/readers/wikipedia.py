"""Wikipedia's dumps, pages-articles.xml, as they are downloaded: pages cut from the stream, their wikitext as prose."""

import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from xml.etree import ElementTree

from corpus.readers.records import File, Row, Segment
from korbert.errors import CorpusError

__all__ = ["rows", "segments"]

_READ_BYTES = 1 << 20
_BEGIN, _END = b"<page>", b"</page>"
_PAGE = re.compile(rb"<page>.*?</page>", re.DOTALL)
_WIKITEXT = "wikitext"


def segments(file: BufferedReader, path: File, name: str, part_bytes: int) -> Iterator[Segment]:
    """Whole pages of about `part_bytes`. Raises CorpusError where the file ends inside a page."""
    first, held = 1, bytearray()
    searched = 0  # in what is held there is no end of a page before
    while data := file.read(_READ_BYTES):
        held += data
        end = held.rfind(_END, searched)
        searched = max(0, len(held) - len(_END))
        if end >= 0 and len(held) >= part_bytes:
            pages = bytes(held[: end + len(_END)])
            yield Segment(name, first, pages)
            first += pages.count(_END)
            del held[: len(pages)]
            searched = 0
    if held.rfind(_BEGIN) > held.rfind(_END):
        raise CorpusError(f"{path}: ends inside page {first + held.count(_END)}: the file is cut off, get it again")
    if _END in held:
        yield Segment(name, first, bytes(held))
    elif first == 1:
        raise CorpusError(f"{path}: no <page> in there: kind wikipedia is for dumps named pages-articles.xml")


def rows(segment: Segment) -> Iterator[Row]:
    """The articles of a segment, good or bad. Redirects, and pages that are none of the encyclopedia's, are dropped."""
    from corpus.readers.wikitext import prose  # not at the top: only this kind of source needs the parser

    for number, match in enumerate(_PAGE.finditer(segment.data), segment.first):
        yield _row(match[0], f"{segment.file} page {number}", prose)


def _row(data: bytes, place: str, prose: Callable[[str], str]) -> Row:
    try:
        page = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        return Row(place, None, data.decode(errors="backslashreplace"), "bad_xml", f"{place}: {error}")
    title, namespace, local = (page.findtext(name, "") for name in ("title", "ns", "id"))
    place = f"{place} ({title})"
    revision = page.find("revision")
    text = None if revision is None else revision.findtext("text")
    if not local.isdecimal():
        return Row(place, None, title, "bad_id", f"{place}: <id> is {local!r}, not a whole number")
    if namespace != "0":
        return Row(place, local, title, "not_an_article", f"{place}: namespace {namespace}")
    if (redirect := page.find("redirect")) is not None:
        return Row(place, local, title, "redirect", f"{place}: to {redirect.get('title')}")
    if text is None or (revision is not None and revision.findtext("model", _WIKITEXT) != _WIKITEXT):
        return Row(place, local, title, "bad_text", f"{place}: no wikitext in its revision")
    return Row(place, local, prose(text))
