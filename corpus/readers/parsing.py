"""Chunks parsed into rows, by the kind of file."""

import json
from collections.abc import Callable, Iterator
from itertools import islice

from corpus.readers import delimited, tables, wikipedia
from corpus.readers.records import (
    Chunk,
    Segment,
    SourceRow,
    checked_row,
    faulty_row,
    too_long_row,
    type_name,
    undecodable_row,
)
from corpus.settings import SourceSettings
from korbert.records.encodings import decoded

__all__ = ["count_records", "rows"]

_SHOWN_CHARS = 1000  # kept of a file that cannot be parsed


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
    for segment in chunk.segments:
        prefix = f"{segment.file}:" if chunk.numbered_by_file else ""
        if segment.record_bytes:
            place = _place(segment, chunk)
            yield too_long_row(segment.data, segment.record_bytes, place, segment.encoding, chunk.longest)
        elif kind in ("parquet", "arrow"):
            yield from tables.rows(segment, source, prefix)
        elif kind in ("csv", "tsv"):
            yield from delimited.rows(segment, source, kind, prefix)
        elif kind == "wikipedia":
            yield from wikipedia.rows(segment, chunk.longest)
        elif kind in ("jsonl", "json"):
            unit = "line" if kind == "jsonl" else "record"
            for number, line in _numbered_lines(segment):
                raw = decoded(line, segment.encoding)
                yield _json_row(raw, f"{segment.file} {unit} {number}", segment, source, f"{prefix}{number}")
        elif kind == "korquad":
            yield from _korquad_rows(segment, source, prefix)
        elif source.documents == "file":
            yield _text_row(segment.data, segment, segment.file, segment.file)
        else:
            lines = _numbered_lines(segment) if source.documents == "line" else _paragraphs(segment)
            for number, data in lines:
                yield _text_row(data, segment, f"{segment.file} line {number}", f"{prefix}{number}")


def _place(segment: Segment, chunk: Chunk) -> str:
    if chunk.kind == "korquad" or (chunk.kind == "text" and chunk.source.documents == "file"):
        return segment.file
    record = {"parquet": "row", "arrow": "row", "wikipedia": "page", "json": "record"}.get(chunk.kind, "line")
    return f"{segment.file} {record} {segment.first}"


def _numbered_lines(segment: Segment) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(segment.data.split(b"\n"), segment.first):
        if line.strip():
            yield number, line


def _paragraphs(segment: Segment) -> Iterator[tuple[int, bytes]]:
    """Paragraphs, separated by blank lines, each with the number of its first line."""
    lines: list[bytes] = []
    for number, line in enumerate(segment.data.split(b"\n"), segment.first):
        if line.strip():
            lines.append(line)
        elif lines:
            yield number - len(lines), b"\n".join(lines)
            lines = []
    if lines:
        yield segment.first + segment.data.count(b"\n") + 1 - len(lines), b"\n".join(lines)


def _korquad_rows(segment: Segment, source: SourceSettings, prefix: str) -> Iterator[SourceRow]:
    """The contexts of a KorQuAD or SQuAD 1.x file."""
    try:
        articles = json.loads(segment.data)["data"]
        contexts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        cause = f"no {error}" if isinstance(error, KeyError) else error
        fault = f"not a KorQuAD file, which holds data, paragraphs and contexts ({cause})"
        beginning = segment.data.decode(errors="replace")[:_SHOWN_CHARS]
        yield faulty_row(segment.file, None, beginning, "bad_json", fault)
        return
    for number, context in enumerate(contexts, 1):
        local = f"{prefix}{number}"
        record = {source.id: local, source.text: context}
        yield checked_row(
            record,
            f"{segment.file} context {number}",
            source,
            local,
            str(context).encode("utf-8", "backslashreplace").decode(),
        )


def _text_row(data: bytes, segment: Segment, place: str, local: str) -> SourceRow:
    text = decoded(data, segment.encoding)
    return undecodable_row(text, place, segment.encoding, local) or SourceRow(place, local, text)


def _json_row(raw: str, place: str, segment: Segment, source: SourceSettings, number: str) -> SourceRow:
    if undecodable := undecodable_row(raw, place, segment.encoding):
        return undecodable
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return faulty_row(place, None, raw, "bad_json", str(error))
    if not isinstance(record, dict):
        kind = "null" if record is None else type_name(record)
        return faulty_row(place, None, raw, "bad_json", f"{kind} where an object belongs")
    return checked_row(record, place, source, number, raw)
