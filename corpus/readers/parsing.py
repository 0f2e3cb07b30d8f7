"""Chunks parsed into rows, by the kind of file."""

import re
from collections.abc import Iterator
from itertools import groupby, islice

from korbert.corpus.corpus_settings import SourceSettings
from korbert.corpus.readers import wikipedia
from korbert.corpus.readers.segments import Chunk, IdAndText, Segment, SourceRow, faulty_row, too_long
from korbert.messages import Message
from korbert.records import UNDECODABLE, Fault, cell_of, decode_bytes, fault_of, paragraphs_of, parse_line, type_name

_SHOWN_CHARS = 1000  # kept of a file that cannot be parsed
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNITS = {"parquet": "row", "arrow": "row", "wikipedia": "page", "json": "record", "korquad": "context"}


def rows(chunk: Chunk, first: int = 0, stop: int | None = None, *, parse_rows: bool = True) -> Iterator[SourceRow]:
    """The records of the chunk in order, faulty ones included. Blank lines are no records.

    first, stop: half-open range of records, counted through the chunk from 0.
    parse_rows: False leaves wikitext unparsed.
    """
    chosen = islice(_records(chunk), first, stop)
    return map(wikipedia.parse_page, chosen) if parse_rows and chunk.kind == "wikipedia" else chosen


def count_records(chunk: Chunk) -> int:
    """The number of rows."""
    return sum(1 for _ in _records(chunk))


def _records(chunk: Chunk) -> Iterator[SourceRow]:
    """Yields a row for each record. A page of Wikipedia keeps its wikitext, which takes long to parse."""
    unit = _UNITS.get(chunk.kind, "line")
    for segment in chunk.segments:
        if chunk.kind == "wikipedia":
            yield from wikipedia.rows(segment)
            continue
        for number, cells, raw in _cells(segment, chunk):
            place = f"{segment.file} {unit} {number}" if number else segment.file
            local = segment.file
            if number:
                local = f"{segment.file}:{number}" if chunk.numbered_by_file else str(number)
            yield row_of(cells, place, local, segment.encoding, chunk.source, raw)


def _cells(segment: Segment, chunk: Chunk) -> Iterator[tuple[int, IdAndText, str | None]]:
    """Number, cells and raw text of each record. The number is 0 for a whole file; raw is None if it is the text."""
    data = segment.data
    encoding = segment.encoding
    documents = chunk.source.documents if chunk.kind == "text" else ""
    is_whole = chunk.kind == "korquad" or documents == "file"
    if not isinstance(data, bytes):
        for number, cells in enumerate(data, segment.first):
            yield number, cells, None
    elif segment.record_bytes:
        number = 0 if is_whole else segment.first
        yield number, too_long(data, segment.record_bytes, encoding, chunk.longest), None
    elif segment.delimited is not None:
        indices = [segment.delimited.columns.index(column) for column in segment.columns]
        lines = (f"{decode_bytes(line, encoding)}\n" for line in data.removesuffix(b"\n").split(b"\n"))
        for before, raw, fields in segment.delimited.records(lines, chunk.longest):
            cells = fields if isinstance(fields, Fault) else [fields[index] for index in indices]
            yield segment.first + before, cells, raw
    elif chunk.kind == "korquad":
        yield from _contexts(decode_bytes(data, encoding))
    elif is_whole:
        yield 0, [decode_bytes(data, encoding)], None
    else:
        for number, line in _lines(data, segment.first, by_blank=documents == "blank"):
            text = decode_bytes(line, encoding)
            if chunk.kind == "text":
                yield number, [text], None
                continue
            value = parse_line(text)
            if isinstance(value, dict):
                yield number, [cell_of(value, key) for key in chunk.source.fields], text
            else:
                yield number, fault_of(value), text


def _contexts(text: str) -> Iterator[tuple[int, IdAndText, str | None]]:
    """Yields the contexts of a KorQuAD or SQuAD 1.x file as records; a single fault if the text is no such file."""
    value = parse_line(text)
    try:
        contexts = [context for article in value["data"] for context, _ in paragraphs_of(article)]
    except (KeyError, TypeError) as error:
        cause: object = f"no {error}" if isinstance(error, KeyError) else error
        if isinstance(value, Fault):
            cause = value.what
        what = Message("not a KorQuAD file, which holds data, paragraphs and contexts ({cause})", cause=cause)
        beginning = text.encode("utf-8", "surrogateescape").decode(errors="replace")[:_SHOWN_CHARS]
        yield 0, Fault("bad_json", what), beginning
    else:
        for number, context in enumerate(contexts, 1):
            yield number, [context], str(context).encode("utf-8", "backslashreplace").decode()


def _lines(data: bytes, first: int, *, by_blank: bool) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that are not blank, with their numbers.

    by_blank: yields paragraphs between blank lines instead, each with the number of its first line.
    """
    for is_filled, lines in groupby(enumerate(data.split(b"\n"), first), lambda line: bool(line[1].strip())):
        if is_filled and by_blank:
            numbers, paragraph = zip(*lines, strict=True)
            yield numbers[0], b"\n".join(paragraph)
        elif is_filled:
            yield from lines


def row_of(
    cells: IdAndText, place: str, number: str, encoding: str, source: SourceSettings, raw: str | None = None
) -> SourceRow:
    """The row of a record, faulty if its id or its text is missing or of the wrong type.

    number: the id of a record that has none. raw: the record as text, which a faulty row keeps; None: the text of the
    record is kept.
    """
    if isinstance(cells, Fault):
        if cells.reason == "too_long":
            return faulty_row(place, None, _readable(cells.raw).rstrip("\n"), cells.reason, cells.what)
        raw = raw or cells.raw
        return undecodable_row(raw, place, encoding) or faulty_row(place, None, raw, cells.reason, cells.what)
    *id, text = cells
    row_id = id[0] if id else number
    is_id = isinstance(row_id, str | int) and not isinstance(row_id, bool) and row_id != ""
    is_id = is_id and not _SURROGATE.search(str(row_id))
    shown = raw or ("" if text is None else str(text))
    shown_id = row_id if is_id and not raw else None  # an undecodable byte of the raw record may be in its id
    if undecodable := undecodable_row(shown, place, encoding, shown_id):
        return undecodable
    if not is_id:
        fault = Message(
            "{field!r} is {kind}, not a text or a whole number", field=source.id, kind=_describe_value(row_id)
        )
        return faulty_row(place, None, shown, "bad_id", fault)
    if not isinstance(text, str):
        fault = Message("{field!r} is {kind}, not a text", field=source.text, kind=_describe_value(text))
    elif surrogate := _SURROGATE.search(text):
        fault = Message("half a surrogate pair at character {character}, which is no text", character=surrogate.start())
    else:
        return SourceRow(place, row_id, text)
    return faulty_row(place, row_id, shown, "bad_text", fault)


def _describe_value(value: object) -> Message:
    return Message("missing") if value is None else type_name(value)


def undecodable_row(text: str, place: str, encoding: str, local: str | int | None = None) -> SourceRow | None:
    """The faulty row of a text with undecodable bytes, shown as `\\xNN`; None if there are none."""
    undecodable = UNDECODABLE.findall(text)
    if not undecodable:
        return None
    detail = Message(
        "{place}: byte 0x{byte:02x} at character {character} is no {encoding}",
        place=place,
        byte=ord(undecodable[0]) - 0xDC00,
        character=text.index(undecodable[0]),
        encoding=encoding.upper(),
    )
    return SourceRow(place, local, _readable(text), "bad_encoding", detail, len(undecodable))


def _readable(text: str) -> str:
    shown = UNDECODABLE.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)
    return shown.encode("utf-8", "backslashreplace").decode()  # other surrogates, which JSON may hold
