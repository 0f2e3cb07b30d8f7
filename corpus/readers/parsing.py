"""Chunks parsed into rows, by the kind of file."""

from collections.abc import Callable, Iterator
from itertools import chain, islice

from corpus.readers import wikipedia
from corpus.readers.records import (
    Cells,
    Chunk,
    Segment,
    SourceRow,
    checked_row,
    faulty_row,
    too_long,
    too_long_row,
    undecodable_row,
)
from corpus.settings import SourceSettings
from korbert.records import arrow
from korbert.records.encodings import decoded
from korbert.records.jsons import cell_of, fault_of, parsed
from korbert.records.table import Fault

__all__ = ["count_records", "rows"]

_SHOWN_CHARS = 1000  # kept of a file that cannot be parsed
_UNITS = {"parquet": "row", "arrow": "row", "wikipedia": "page", "json": "record"}


def rows(chunk: Chunk, first: int = 0, stop: int | None = None, *, parsed: bool = True) -> Iterator[SourceRow]:
    """The records of the chunk in order, faulty ones included. Blank lines are no records.

    first, stop: half-open range of records, counted through the chunk from 0. parsed: False leaves wikitext unparsed.
    """
    for record in islice(_records(chunk), first, stop):
        yield record if isinstance(record, SourceRow) else record(parsed)


def count_records(chunk: Chunk) -> int:
    """The number of rows."""
    return sum(1 for _ in _records(chunk))


def _records(chunk: Chunk) -> Iterator[SourceRow | Callable[[bool], SourceRow]]:
    """A row for each record; for a page of Wikipedia a function that makes it, as parsing wikitext takes long."""
    source, kind = chunk.source, chunk.kind
    is_whole = kind in ("korquad", "markdown") or (kind == "text" and source.documents == "file")
    for segment in chunk.segments:
        prefix = f"{segment.file}:" if chunk.numbered_by_file else ""
        place = segment.file if is_whole else f"{segment.file} {_UNITS.get(kind, 'line')} "
        data, encoding = segment.data, segment.encoding
        if not isinstance(data, bytes):
            for number, cells in enumerate(data, segment.first):
                yield _table_row(cells, f"{place}{number}", f"{prefix}{number}", encoding, source)
        elif segment.record_bytes:
            fault = too_long(data, segment.record_bytes, encoding, chunk.longest)
            yield too_long_row(fault, place if is_whole else f"{place}{segment.first}")
        elif segment.delimited is not None:
            places = [segment.delimited.columns.index(column) for column in segment.columns]
            lines = (f"{decoded(line, encoding)}\n" for line in data.removesuffix(b"\n").split(b"\n"))
            for before, raw, fields in segment.delimited.records(lines, chunk.longest):
                number = segment.first + before
                cells = fields if isinstance(fields, Fault) else [fields[column] for column in places]
                yield _table_row(cells, f"{place}{number}", f"{prefix}{number}", encoding, source, raw)
        elif segment.columns:
            batches = arrow.batches_of(data)
            found = chain.from_iterable(arrow.rows_in(batch, segment.columns, {}) for batch in batches)
            for number, cells in enumerate(found, segment.first):
                yield _table_row(cells, f"{place}{number}", f"{prefix}{number}", encoding, source)
        elif kind == "wikipedia":
            yield from wikipedia.rows(data, segment, chunk.longest)
        elif kind == "korquad":
            yield from _korquad_rows(decoded(data, encoding), segment, source, prefix)
        elif kind == "markdown":
            from corpus.readers import markdown  # not at the top: only this kind of source needs the parser

            text = decoded(data, encoding)
            yield undecodable_row(text, place, encoding, place) or markdown.row(text, place, source)
        elif is_whole:
            yield _text_row(decoded(data, encoding), place, encoding, place)
        else:
            by_blank = kind == "text" and source.documents == "blank"
            for number, line in _paragraphs(segment.first, data) if by_blank else _filled_lines(segment.first, data):
                text, here, local = decoded(line, encoding), f"{place}{number}", f"{prefix}{number}"
                is_json = kind == "jsonl"
                yield (
                    _json_row(text, here, encoding, source, local)
                    if is_json
                    else _text_row(text, here, encoding, local)
                )


def _filled_lines(first: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(data.split(b"\n"), first) if line.strip())


def _paragraphs(first: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Paragraphs, separated by blank lines, each with the number of its first line."""
    lines: list[bytes] = []
    for number, line in enumerate([*data.split(b"\n"), b""], first):
        if line.strip():
            lines.append(line)
        elif lines:
            yield number - len(lines), b"\n".join(lines)
            lines = []


def _korquad_rows(text: str, segment: Segment, source: SourceSettings, prefix: str) -> Iterator[SourceRow]:
    """The contexts of a KorQuAD or SQuAD 1.x file."""
    value = parsed(text)
    try:
        contexts = [paragraph["context"] for article in value["data"] for paragraph in article["paragraphs"]]
    except (KeyError, TypeError) as error:
        cause = value.what if isinstance(value, Fault) else f"no {error}" if isinstance(error, KeyError) else error
        fault = f"not a KorQuAD file, which holds data, paragraphs and contexts ({cause})"
        beginning = text.encode("utf-8", "surrogateescape").decode(errors="replace")[:_SHOWN_CHARS]
        yield faulty_row(segment.file, None, beginning, "bad_json", fault)
        return
    for number, context in enumerate(contexts, 1):
        raw = str(context).encode("utf-8", "backslashreplace").decode()
        yield checked_row(f"{prefix}{number}", context, f"{segment.file} context {number}", source, raw)


def _table_row(
    cells: Cells, place: str, number: str, encoding: str, source: SourceSettings, raw: str | None = None
) -> SourceRow:
    """raw: of CSV and TSV."""
    if isinstance(cells, Fault):
        if cells.reason == "too_long":
            return too_long_row(cells, place)
        undecodable = undecodable_row(cells.raw, place, encoding)
        return undecodable or faulty_row(place, None, cells.raw, cells.reason, cells.what)
    *id, text = (decoded(cell, "utf-8") if isinstance(cell, bytes) else cell for cell in cells)
    local = id[0] if source.id else number
    shown = raw or ("" if text is None else str(text))
    return undecodable_row(shown, place, encoding, None if raw else local) or checked_row(
        local, text, place, source, shown
    )


def _text_row(text: str, place: str, encoding: str, local: str) -> SourceRow:
    return undecodable_row(text, place, encoding, local) or SourceRow(place, local, text)


def _json_row(raw: str, place: str, encoding: str, source: SourceSettings, number: str) -> SourceRow:
    if undecodable := undecodable_row(raw, place, encoding):
        return undecodable
    record = parsed(raw)
    if not isinstance(record, dict):
        fault = fault_of(record)
        return faulty_row(place, None, raw, fault.reason, fault.what)
    return checked_row(
        cell_of(record, source.id) if source.id else number, cell_of(record, source.text), place, source, raw
    )
