"""Chunks parsed into rows, by the kind of file."""

from collections.abc import Iterator
from itertools import groupby, islice

from korbert.corpus.readers import records, wikipedia
from korbert.corpus.readers.records import Cells, Chunk, Segment, SourceRow
from korbert.corpus.settings import SourceSettings
from korbert.records.encodings import decoded
from korbert.records.jsons import cell_of, fault_of, parsed
from korbert.records.table import Fault

_SHOWN_CHARS = 1000  # kept of a file that cannot be parsed
_UNITS = {"parquet": "row", "arrow": "row", "wikipedia": "page", "json": "record"}


def rows(chunk: Chunk, first: int = 0, stop: int | None = None, *, parsed: bool = True) -> Iterator[SourceRow]:
    """The records of the chunk in order, faulty ones included. Blank lines are no records.

    first, stop: half-open range of records, counted through the chunk from 0. parsed: False leaves wikitext unparsed.
    """
    chosen = islice(_records(chunk), first, stop)
    return map(wikipedia.parsed, chosen) if parsed and chunk.kind == "wikipedia" else chosen


def count_records(chunk: Chunk) -> int:
    """The number of rows."""
    return sum(1 for _ in _records(chunk))


def _records(chunk: Chunk) -> Iterator[SourceRow]:
    """A row for each record; that of a page of Wikipedia with its wikitext, which takes long to parse."""
    source, kind = chunk.source, chunk.kind
    is_whole = kind == "korquad" or (kind == "text" and source.documents == "file")
    for segment in chunk.segments:
        prefix = f"{segment.file}:" if chunk.numbered_by_file else ""
        place = segment.file if is_whole else f"{segment.file} {_UNITS.get(kind, 'line')} "
        data, encoding = segment.data, segment.encoding
        if segment.record_bytes:
            assert isinstance(data, bytes)
            fault = records.too_long(data, segment.record_bytes, encoding, chunk.longest)
            yield records.too_long_row(fault, place if is_whole else f"{place}{segment.first}")
        elif is_whole:
            yield from _file_rows(segment, chunk, prefix)
        elif kind == "wikipedia":
            yield from wikipedia.rows(segment)
        elif kind in ("text", "jsonl"):
            for number, line in _lines(segment, by_blank=source.documents == "blank" and kind == "text"):
                text, here, local = decoded(line, encoding), f"{place}{number}", f"{prefix}{number}"
                if undecodable := records.undecodable_row(text, here, encoding, local if kind == "text" else None):
                    yield undecodable
                elif kind == "text":
                    yield SourceRow(here, local, text)
                elif isinstance(record := parsed(text), dict):
                    local = cell_of(record, source.id) if source.id else local
                    yield records.checked_row(local, cell_of(record, source.text), here, source, text)
                else:
                    fault = fault_of(record)
                    yield records.faulty_row(here, None, text, fault.reason, fault.what)
        else:
            for number, cells, raw in _cells(segment, chunk.longest):
                yield _table_row(cells, f"{place}{number}", f"{prefix}{number}", encoding, source, raw)


def _file_rows(segment: Segment, chunk: Chunk, prefix: str) -> Iterator[SourceRow]:
    """The rows of a file that is not cut: the contexts of a KorQuAD or SQuAD 1.x file, or one row."""
    assert isinstance(segment.data, bytes)
    text, file, encoding = decoded(segment.data, segment.encoding), segment.file, segment.encoding
    if chunk.kind == "korquad":
        value = parsed(text)
        try:
            contexts = [paragraph["context"] for article in value["data"] for paragraph in article["paragraphs"]]
        except (KeyError, TypeError) as error:
            cause = value.what if isinstance(value, Fault) else f"no {error}" if isinstance(error, KeyError) else error
            fault = f"not a KorQuAD file, which holds data, paragraphs and contexts ({cause})"
            beginning = text.encode("utf-8", "surrogateescape").decode(errors="replace")[:_SHOWN_CHARS]
            yield records.faulty_row(file, None, beginning, "bad_json", fault)
            return
        for number, context in enumerate(contexts, 1):
            raw = str(context).encode("utf-8", "backslashreplace").decode()
            yield records.checked_row(f"{prefix}{number}", context, f"{file} context {number}", chunk.source, raw)
    else:
        yield records.undecodable_row(text, file, encoding, file) or SourceRow(file, file, text)


def _cells(segment: Segment, longest: int) -> Iterator[tuple[int, Cells, str | None]]:
    """(number, cells or fault, raw text of CSV and TSV) of each record of a table."""
    if not isinstance(segment.data, bytes):
        for number, cells in enumerate(segment.data, segment.first):
            yield number, cells, None
    else:
        assert segment.delimited is not None
        indices = [segment.delimited.columns.index(column) for column in segment.columns]
        lines = (f"{decoded(line, segment.encoding)}\n" for line in segment.data.removesuffix(b"\n").split(b"\n"))
        for before, raw, fields in segment.delimited.records(lines, longest):
            cells = fields if isinstance(fields, Fault) else [fields[index] for index in indices]
            yield segment.first + before, cells, raw


def _lines(segment: Segment, *, by_blank: bool) -> Iterator[tuple[int, bytes]]:
    """The filled lines with their numbers; by_blank: paragraphs between blank lines, with that of their first line."""
    assert isinstance(segment.data, bytes)
    numbered = enumerate(segment.data.split(b"\n"), segment.first)
    for is_filled, lines in groupby(numbered, lambda line: bool(line[1].strip())):
        if is_filled and by_blank:
            numbers, paragraph = zip(*lines, strict=True)
            yield numbers[0], b"\n".join(paragraph)
        elif is_filled:
            yield from lines


def _table_row(
    cells: Cells, place: str, number: str, encoding: str, source: SourceSettings, raw: str | None
) -> SourceRow:
    if isinstance(cells, Fault):
        if cells.reason == "too_long":
            return records.too_long_row(cells, place)
        undecodable = records.undecodable_row(cells.raw, place, encoding)
        return undecodable or records.faulty_row(place, None, cells.raw, cells.reason, cells.what)
    *id, text = (decoded(cell, "utf-8") if isinstance(cell, bytes) else cell for cell in cells)
    local = id[0] if source.id else number
    shown = raw or ("" if text is None else str(text))
    undecodable = records.undecodable_row(shown, place, encoding, None if raw else local)
    return undecodable or records.checked_row(local, text, place, source, shown)
