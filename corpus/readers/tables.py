"""Parquet files, and the Arrow files of a `datasets` data set on disk."""

import io
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.readers.records import (
    SHOWN_BYTES,
    File,
    Kind,
    Segment,
    SourceRow,
    checked_row,
    needed_columns,
    undecodable_row,
)
from corpus.settings import SourceSettings
from korbert.errors import CorpusError
from korbert.records.encodings import decoded
from korbert.records.frames import open_bytes, open_file

__all__ = ["rows", "segments"]

_BATCH_ROWS = 1024  # of a Parquet file, read at a time
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_NAMES = {"parquet": "Parquet", "arrow": "Arrow"}
_EXCEPTION = re.compile(r"\w*Exception: ")  # C++ class names in messages of Arrow


def segments(
    source: SourceSettings, kind: Kind, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """Rows with the columns of id and text, about `part_bytes` in a segment.

    longest: maximum bytes of an id or a text; a row with a longer one is a segment of its own.
    """
    first = 1
    batches: list[pa.RecordBatch] = []
    for batch, cell in _without_long_cells(_batches(source, kind, path), longest):
        if batch.num_rows or cell is None:
            batches.append(batch)
        if batches and (cell is not None or sum(batch.nbytes for batch in batches) >= part_bytes):
            yield Segment(name, first, _stream(batches))
            first += sum(batch.num_rows for batch in batches)
            batches = []
        if cell is not None:
            yield Segment(name, first, cell.slice(0, min(cell.size, SHOWN_BYTES)).to_pybytes(), record_bytes=cell.size)
            first += 1
    if batches:
        yield Segment(name, first, _stream(batches))


def _without_long_cells(
    batches: Iterator[pa.RecordBatch], longest: int
) -> Iterator[tuple[pa.RecordBatch, pa.Buffer | None]]:
    """The batches, split at rows whose id or text is too long. (rows before, that cell); None for the last rows."""
    for batch in batches:
        begin = 0
        cells: dict[int, pa.Buffer] = {}
        left = pa.RecordBatch.from_arrays(
            [_cut(column, longest, cells) for column in batch.columns], batch.schema.names
        )
        for place, cell in sorted(cells.items()):
            yield left.slice(begin, place - begin), cell
            begin = place + 1
        if not cells:
            yield batch, None
        elif begin < batch.num_rows:
            yield left.slice(begin), None


def _cut(column: pa.Array, longest: int, cells: dict[int, pa.Buffer]) -> pa.Array:
    """The column with its cells that are too long emptied, and moved to `cells` by row."""
    values = column.dictionary if pa.types.is_dictionary(column.type) else column
    if values.nbytes <= longest or not any(is_text(values.type) for is_text in _TEXTS):
        return column
    too_long = pc.greater(pc.binary_length(values), longest)
    where = too_long if values is column else too_long.take(column.indices)
    for place in pc.indices_nonzero(where).to_pylist():
        cells[place] = (column[place] if values is column else column[place].value).as_buffer()
    left = pc.if_else(too_long, pa.scalar(b"").cast(values.type), values)
    return left if values is column else pa.DictionaryArray.from_arrays(column.indices, left)


def _batches(source: SourceSettings, kind: Kind, path: File) -> Iterator[pa.RecordBatch]:
    try:
        if kind == "parquet":
            with open_file(path) as file, pq.ParquetFile(file) as parquet:
                columns = needed_columns(source, parquet.schema_arrow.names, path)
                yield from parquet.iter_batches(_BATCH_ROWS, columns=columns)
        else:
            with open_bytes(path) as file, pa.ipc.open_stream(file) as stream:
                columns = needed_columns(source, stream.schema.names, path)
                yield from (batch.select(columns) for batch in stream)
    except (pa.ArrowException, OSError, KeyError) as error:  # Arrow also raises OSError
        cause = _EXCEPTION.sub("", str(error.args[0] if error.args else error)).splitlines()[0]
        raise CorpusError(f"{path}: not a whole {_NAMES[kind]} file ({cause}): get it again") from error


def _stream(batches: list[pa.RecordBatch]) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def _cells(table: pa.Table, name: str) -> list[Any]:
    """The cells of a column, those of strings as bytes: they may hold invalid UTF-8."""
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    cells: list[Any] = column.to_pylist()
    return cells


def rows(segment: Segment, source: SourceSettings, prefix: str) -> Iterator[SourceRow]:
    """The rows of a segment, faulty ones included. prefix: stands before a row's number, if that is its id."""
    table = pa.ipc.open_stream(segment.data).read_all()
    texts = _cells(table, source.text)
    ids = _cells(table, source.id) if source.id else [None] * len(texts)
    ids = [decoded(id, "utf-8") if isinstance(id, bytes) else id for id in ids]
    for number, (local, text) in enumerate(zip(ids, texts, strict=True), segment.first):
        place = f"{segment.file} row {number}"
        value = decoded(text, "utf-8") if isinstance(text, bytes) else text
        if isinstance(text, bytes) and (undecodable := undecodable_row(value, place, "utf-8", local)):
            yield undecodable
            continue
        record = {source.text: value} | ({source.id: local} if source.id else {})
        yield checked_row(record, place, source, f"{prefix}{number}", str(value or ""))
