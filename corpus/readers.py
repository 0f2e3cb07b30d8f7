"""Source files cut into chunks of bytes, and chunks read into rows. One bad row never stops the others.

Cutting is sequential, cheap, and done by one process; reading rows is done by the workers.
"""

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os.path import commonpath
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.frames import open_bytes
from corpus.settings import SourceSettings
from korbert.errors import CorpusError

__all__ = ["Chunk", "Row", "Segment", "chunks", "rows"]

Kind = Literal["jsonl", "text", "parquet"]

_KINDS: dict[str, Kind] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".txt": "text",
    ".text": "text",
    ".parquet": "parquet",
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BATCH_ROWS = 1024  # of a Parquet file, read at once
_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
}


@dataclass(frozen=True)
class Segment:
    """Whole records of one file: lines, or an Arrow stream of rows. first: the number of the first one, from 1."""

    file: str
    first: int
    data: bytes


@dataclass(frozen=True)
class Chunk:
    """What one work unit reads. numbered_by_file: more than one file, so a line's number alone is no id."""

    source: SourceSettings
    kind: Kind
    segments: tuple[Segment, ...]
    numbered_by_file: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A document as the source has it, or what is wrong with it: then `reason` is set, and `text` is the raw row."""

    place: str
    id: str | int | None
    text: str
    reason: str | None = None
    detail: str = ""


def chunks(source: SourceSettings, files: Sequence[Path], part_bytes: int) -> Iterator[Chunk]:
    """The files in their order, cut between records once a chunk holds `part_bytes` or more."""
    names = _names(files)
    segments: list[Segment] = []
    kind: Kind | None = None
    for path, name in zip(files, names, strict=True):
        if kind is not None and kind != _kind(source, path) and segments:
            yield Chunk(source, kind, tuple(segments), len(files) > 1)
            segments = []
        kind = _kind(source, path)
        for segment in _segments(source, kind, path, name, part_bytes):
            segments.append(segment)
            if sum(len(segment.data) for segment in segments) >= part_bytes:
                yield Chunk(source, kind, tuple(segments), len(files) > 1)
                segments = []
    if segments and kind is not None:
        yield Chunk(source, kind, tuple(segments), len(files) > 1)


def _names(files: Sequence[Path]) -> list[str]:
    """What a file is called in ids and messages: its path below the folder that all have in common."""
    if len(files) < 2:
        return [path.name for path in files]
    folder = commonpath([path.parent for path in files])
    return [path.relative_to(folder).as_posix() for path in files]


def _kind(source: SourceSettings, path: Path) -> Kind:
    if source.kind != "auto":
        return source.kind
    name = path.with_suffix("") if path.suffix in (".gz", ".zst") else path
    if name.suffix not in _KINDS:
        raise CorpusError(
            f"{path}: its name does not tell what it is: set kind of source {source.name!r} in the recipe"
        )
    return _KINDS[name.suffix]


def _segments(source: SourceSettings, kind: Kind, path: Path, name: str, part_bytes: int) -> Iterator[Segment]:
    if kind == "parquet":
        return _parquet_segments(source, path, name, part_bytes)
    if kind == "text" and source.documents == "file":
        return _whole_file(path, name)
    return _line_segments(path, name, part_bytes, to_blank=kind == "text" and source.documents == "blank")


def _whole_file(path: Path, name: str) -> Iterator[Segment]:
    with open_bytes(path) as file:
        yield Segment(name, 1, file.read().removeprefix(_BYTE_ORDER_MARK))


def _line_segments(path: Path, name: str, part_bytes: int, to_blank: bool) -> Iterator[Segment]:
    """Whole lines of about `part_bytes`. to_blank: go on to the next blank line, so that no document is cut."""
    first = 1
    with open_bytes(path) as file:
        while data := file.read(part_bytes) + file.readline():
            if to_blank:
                data += b"".join(_lines_to_blank(file))
            yield Segment(name, first, data.removeprefix(_BYTE_ORDER_MARK) if first == 1 else data)
            first += data.count(b"\n")


def _lines_to_blank(file: io.BufferedReader) -> Iterator[bytes]:
    for line in file:
        yield line
        if not line.strip():
            return


def _parquet_segments(source: SourceSettings, path: Path, name: str, part_bytes: int) -> Iterator[Segment]:
    first = 1
    batches: list[pa.RecordBatch] = []
    for batch in _parquet_batches(source, path):
        batches.append(batch)
        if sum(batch.nbytes for batch in batches) >= part_bytes:
            yield Segment(name, first, _stream(batches))
            first += sum(batch.num_rows for batch in batches)
            batches = []
    if batches:
        yield Segment(name, first, _stream(batches))


def _parquet_batches(source: SourceSettings, path: Path) -> Iterator[pa.RecordBatch]:
    columns = [source.id, source.text] if source.id else [source.text]
    try:
        with pq.ParquetFile(path) as file:
            for column in columns:
                if column not in file.schema_arrow.names:
                    found = ", ".join(file.schema_arrow.names)
                    raise CorpusError(f"{path}: no column {column!r} among {found}: set id and text of {source.name!r}")
            yield from file.iter_batches(_BATCH_ROWS, columns=columns)
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file: check the source's path in the recipe and --data") from None
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path}: not a whole Parquet file ({str(error).splitlines()[0]}): get it again") from error


def _stream(batches: list[pa.RecordBatch]) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def rows(chunk: Chunk) -> Iterator[Row]:
    """Every record of the chunk, good or bad, in order. Blank lines are no records."""
    for segment in chunk.segments:
        prefix = f"{segment.file}:" if chunk.numbered_by_file else ""
        if chunk.kind == "parquet":
            yield from _parquet_rows(segment, chunk.source, prefix)
        elif chunk.kind == "jsonl":
            for number, line in _numbered_lines(segment):
                yield _json_row(line, f"{segment.file} line {number}", chunk.source, f"{prefix}{number}")
        elif chunk.source.documents == "file":
            yield _text_row(segment.data, segment.file, segment.file)
        else:
            lines = _numbered_lines(segment) if chunk.source.documents == "line" else _paragraphs(segment)
            for number, data in lines:
                yield _text_row(data, f"{segment.file} line {number}", f"{prefix}{number}")


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


def _text_row(data: bytes, place: str, local: str) -> Row:
    try:
        return Row(place, local, data.decode())
    except UnicodeDecodeError as error:
        return _bad_utf8(data, place, error, local)


def _json_row(line: bytes, place: str, source: SourceSettings, number: str) -> Row:
    try:
        raw = line.decode()
        record = json.loads(raw)
    except UnicodeDecodeError as error:
        return _bad_utf8(line, place, error, None)
    except (ValueError, RecursionError) as error:
        return Row(place, None, raw, "bad_json", f"{place}: {error}")
    if not isinstance(record, dict):
        return Row(place, None, raw, "bad_json", f"{place}: {_name(record)} where an object belongs")
    return _checked_row(record, place, source, number, raw)


def _checked_row(record: dict[str, Any], place: str, source: SourceSettings, number: str, raw: str) -> Row:
    """A row whose id and text have the right types, or the reason why not."""
    local = record.get(source.id) if source.id else number
    if isinstance(local, bool) or not isinstance(local, str | int) or local == "" or _SURROGATE.search(str(local)):
        return Row(
            place, None, raw, "bad_id", f"{place}: {source.id!r} is {_name(local)}, not a text or a whole number"
        )
    text = record.get(source.text)
    if not isinstance(text, str):
        return Row(place, local, raw, "bad_text", f"{place}: {source.text!r} is {_name(text)}, not a text")
    if found := _SURROGATE.search(text):
        detail = f"{place}: half a surrogate pair at character {found.start()}, which is no text"
        return Row(place, local, raw, "bad_text", detail)
    return Row(place, local, text)


def _parquet_rows(segment: Segment, source: SourceSettings, prefix: str) -> Iterator[Row]:
    table = pa.ipc.open_stream(segment.data).read_all()
    texts = table.column(source.text)
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.large_binary())  # a file may hold bytes that are no UTF-8
    ids: Iterable[Any] = table.column(source.id).to_pylist() if source.id else [None] * len(texts)
    for number, (local, text) in enumerate(zip(ids, texts.to_pylist(), strict=True), segment.first):
        place = f"{segment.file} row {number}"
        try:
            record = {source.text: text.decode() if isinstance(text, bytes) else text}
        except UnicodeDecodeError as error:
            yield _bad_utf8(text, place, error, local)
            continue
        if source.id:
            record[source.id] = local
        yield _checked_row(record, place, source, f"{prefix}{number}", str(record[source.text] or ""))


def _bad_utf8(data: bytes, place: str, error: UnicodeDecodeError, local: str | int | None) -> Row:
    detail = f"{place}: byte {error.start} (0x{data[error.start]:02x}) is no UTF-8"
    return Row(place, local, data.decode(errors="backslashreplace"), "bad_utf8", detail)


def _name(value: object) -> str:
    return "missing" if value is None else _JSON_NAMES.get(type(value), f"a {type(value).__name__}")
