"""Chunks as rows."""

import json
from collections.abc import Callable, Iterator
from itertools import islice

from corpus.readers import delimited, tables, wikipedia
from corpus.readers.records import (
    Chunk,
    Segment,
    SourceRow,
    checked_row,
    decoded,
    too_long_row,
    type_name,
    undecodable_row,
)
from corpus.settings import SourceSettings

__all__ = ["count_records", "rows"]

_SHOWN_CHARS = 1000  # of a whole file that cannot be read


def rows(chunk: Chunk, first: int = 0, stop: int | None = None, *, parsed: bool = True) -> Iterator[SourceRow]:
    """Every record of the chunk, good or bad, in order. Blank lines are no records.

    first, stop: only the records from one to before the other, counted through the chunk from 0. parsed: False leaves
    wikitext as it is.
    """
    for record in islice(_records(chunk), first, stop):
        yield record if isinstance(record, SourceRow) else record(parsed)


def count_records(chunk: Chunk) -> int:
    """How many rows it has."""
    return sum(1 for _ in _records(chunk))


def _records(chunk: Chunk) -> Iterator[SourceRow | Callable[[bool], SourceRow]]:
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
        elif kind == "jsonl":
            for number, line in _numbered_lines(segment):
                raw = decoded(line, segment.encoding)
                yield _json_row(raw, f"{segment.file} line {number}", segment, source, f"{prefix}{number}")
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
    record = {"parquet": "row", "arrow": "row", "wikipedia": "page"}.get(chunk.kind, "line")
    return f"{segment.file} {record} {segment.first}"


def _numbered_lines(segment: Segment) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(segment.data.split(b"\n"), segment.first):
        if line.strip():
            yield number, line


def _paragraphs(segment: Segment) -> Iterator[tuple[int, bytes]]:
    """What stands between blank lines, with the number of its first line."""
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
    """The contexts of a file as KorQuAD and SQuAD 1.x have it."""
    try:
        articles = json.loads(segment.data)["data"]
        contexts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        told = f"no {error}" if isinstance(error, KeyError) else error
        detail = f"{segment.file}: not a KorQuAD file, which holds data, paragraphs and contexts ({told})"
        yield SourceRow(segment.file, None, segment.data.decode(errors="replace")[:_SHOWN_CHARS], "bad_json", detail)
        return
    for number, context in enumerate(contexts, 1):
        local = f"{prefix}{number}"
        record = {source.id: local, source.text: context}
        yield checked_row(record, f"{segment.file} context {number}", source, local, str(context))


def _text_row(data: bytes, segment: Segment, place: str, local: str) -> SourceRow:
    text = decoded(data, segment.encoding)
    return undecodable_row(text, place, segment.encoding, local) or SourceRow(place, local, text)


def _json_row(raw: str, place: str, segment: Segment, source: SourceSettings, number: str) -> SourceRow:
    if wrong := undecodable_row(raw, place, segment.encoding):
        return wrong
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return SourceRow(place, None, raw, "bad_json", f"{place}: {error}")
    if not isinstance(record, dict):
        found = "null" if record is None else type_name(record)
        return SourceRow(place, None, raw, "bad_json", f"{place}: {found} where an object belongs")
    return checked_row(record, place, source, number, raw)
