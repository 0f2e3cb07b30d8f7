"""Chunks as rows."""

import json
from collections.abc import Iterator

from corpus.readers import delimited, tables, wikipedia
from corpus.readers.records import Chunk, Row, Segment, checked_row, decoded, type_name, undecodable_row
from corpus.settings import SourceSettings

__all__ = ["rows"]


def rows(chunk: Chunk) -> Iterator[Row]:
    """Every record of the chunk, good or bad, in order. Blank lines are no records."""
    source, kind = chunk.source, chunk.kind
    for segment in chunk.segments:
        prefix = f"{segment.file}:" if chunk.numbered_by_file else ""
        if kind in ("parquet", "arrow"):
            yield from tables.rows(segment, source, prefix)
        elif kind in ("csv", "tsv"):
            yield from delimited.rows(segment, source, kind, prefix)
        elif kind == "wikipedia":
            yield from wikipedia.rows(segment)
        elif kind == "jsonl":
            for number, line in _numbered_lines(segment):
                raw = decoded(line, segment.encoding)
                yield _json_row(raw, f"{segment.file} line {number}", segment, source, f"{prefix}{number}")
        elif source.documents == "file":
            yield _text_row(segment.data, segment, segment.file, segment.file)
        else:
            lines = _numbered_lines(segment) if source.documents == "line" else _paragraphs(segment)
            for number, data in lines:
                yield _text_row(data, segment, f"{segment.file} line {number}", f"{prefix}{number}")


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


def _text_row(data: bytes, segment: Segment, place: str, local: str) -> Row:
    text = decoded(data, segment.encoding)
    return undecodable_row(text, place, segment.encoding, local) or Row(place, local, text)


def _json_row(raw: str, place: str, segment: Segment, source: SourceSettings, number: str) -> Row:
    if wrong := undecodable_row(raw, place, segment.encoding):
        return wrong
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return Row(place, None, raw, "bad_json", f"{place}: {error}")
    if not isinstance(record, dict):
        found = "null" if record is None else type_name(record)
        return Row(place, None, raw, "bad_json", f"{place}: {found} where an object belongs")
    return checked_row(record, place, source, number, raw)
