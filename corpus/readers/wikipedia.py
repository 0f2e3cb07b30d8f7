"""Wikipedia's dumps, pages-articles.xml, as they are downloaded: pages cut from the stream, their wikitext as prose."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedReader
from xml.etree import ElementTree

from corpus.readers.records import SHOWN_BYTES, File, Segment, SourceRow, too_long_row
from korbert.errors import CorpusError

__all__ = ["rows", "segments"]

_READ_BYTES = 1 << 20
_BEGIN, _END = b"<page>", b"</page>"
_PAGE = re.compile(rb"<page>.*?</page>", re.DOTALL)
_WIKITEXT = "wikitext"
_MAX_UNCLOSED = 500  # brackets of a page: with more it is no text, and the parser would take minutes


def segments(file: BufferedReader, path: File, name: str, part_bytes: int, longest: int) -> Iterator[Segment]:
    """Whole pages of about `part_bytes`. Raises CorpusError where the file ends inside a page.

    longest: bytes that a page may have; of a longer one only the beginning is held.
    """
    first, held = 1, bytearray()
    searched = 0  # in what is held there is no end of a page before
    while data := file.read(_READ_BYTES):
        held += data
        end = held.rfind(_END, searched)
        searched = max(0, len(held) - len(_END))
        too_long = len(held) > longest and len(held) - held.rfind(_END) > longest  # what follows the last whole page
        if (end >= 0 and len(held) >= part_bytes) or (too_long and _END in held):
            pages = bytes(held[: held.rfind(_END) + len(_END)])
            yield Segment(name, first, pages)
            first += pages.count(_END)
            del held[: len(pages)]
            searched = 0
        if too_long and (begin := held.find(_BEGIN)) < 0:
            del held[: -len(_BEGIN)]
            searched = 0
        elif too_long and len(held) - begin > longest:
            beginning = bytes(held[begin : begin + SHOWN_BYTES])
            size, rest = _pass_over(file, held[begin:])
            if rest is None:
                raise CorpusError(f"{path}: ends inside page {first}: the file is cut off, get it again")
            yield Segment(name, first, beginning, record_bytes=size)
            first, held, searched = first + 1, rest, 0
    if held.rfind(_BEGIN) > held.rfind(_END):
        raise CorpusError(f"{path}: ends inside page {first + held.count(_END)}: the file is cut off, get it again")
    if _END in held:
        yield Segment(name, first, bytes(held))
    elif first == 1:
        raise CorpusError(f"{path}: no <page> in there: kind wikipedia is for dumps named pages-articles.xml")


def _pass_over(file: BufferedReader, page: bytearray) -> tuple[int, bytearray | None]:
    """Reads on to the end of a page. Returns its bytes, and what was read behind it; None: the file ends before."""
    size = len(page)
    held = page[-len(_END) :]  # the end may lie across two reads
    while data := file.read(_READ_BYTES):
        before = len(held)
        held += data
        if (end := held.find(_END)) >= 0:
            return size - before + end + len(_END), held[end + len(_END) :]
        size += len(data)
        del held[: -len(_END)]
    return size, None


def rows(segment: Segment, longest: int) -> Iterator[SourceRow | Callable[[bool], SourceRow]]:
    """The articles of a segment, good or bad, or what makes such a row, as wikitext takes long to parse.

    It is told whether to. Redirects, and pages that are none of the encyclopedia's, are dropped.
    """
    for number, match in enumerate(_PAGE.finditer(segment.data), segment.first):
        place = f"{segment.file} page {number}"
        if len(match[0]) > longest:
            yield too_long_row(match[0], len(match[0]), place, segment.encoding, longest)
        else:
            yield partial(_row, match[0], place)


def _row(data: bytes, place: str, parsed: bool) -> SourceRow:
    try:
        page = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        return SourceRow(place, None, data.decode(errors="backslashreplace"), "bad_xml", f"{place}: {error}")
    title, namespace, local = (page.findtext(name, "") for name in ("title", "ns", "id"))
    place = f"{place} ({title})"
    revision = page.find("revision")
    text = None if revision is None else revision.findtext("text")
    if not local.isdecimal():
        return SourceRow(place, None, title, "bad_id", f"{place}: <id> is {local!r}, not a whole number")
    if namespace != "0":
        return SourceRow(place, local, title, "not_an_article", f"{place}: namespace {namespace}")
    if (redirect := page.find("redirect")) is not None:
        return SourceRow(place, local, title, "redirect", f"{place}: to {redirect.get('title')}")
    if text is None or (revision is not None and revision.findtext("model", _WIKITEXT) != _WIKITEXT):
        return SourceRow(place, local, title, "bad_text", f"{place}: no wikitext in its revision")
    return _article(text, place, local) if parsed else SourceRow(place, local, text)


def _article(text: str, place: str, local: str) -> SourceRow:
    from corpus.readers.wikitext import prose, unclosed  # not at the top: only this kind of source needs the parser

    if (brackets := unclosed(text)) > _MAX_UNCLOSED:
        return SourceRow(
            place, local, text, "bad_text", f"{place}: {brackets:,} brackets and tags in it are never closed"
        )
    try:
        return SourceRow(place, local, prose(text))
    except RecursionError:
        return SourceRow(place, local, text, "bad_text", f"{place}: its wikitext is nested too deep to be parsed")
