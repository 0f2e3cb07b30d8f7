"""Parquet files, and the Arrow files of a `datasets` data set on disk."""

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.readers.frames import open_bytes, open_file
from corpus.readers.records import File, Kind, Row, Segment, checked_row, decoded, needed_columns, undecodable_row
from corpus.settings import SourceSettings
from korbert.errors import CorpusError

__all__ = ["rows", "segments"]

_BATCH_ROWS = 1024  # of a Parquet file, read at once
_NAMES = {"parquet": "Parquet", "arrow": "Arrow"}


def segments(source: SourceSettings, kind: Kind, path: File, name: str, part_bytes: int) -> Iterator[Segment]:
    """Rows of about `part_bytes` with the columns of id and text alone."""
    first = 1
    batches: list[pa.RecordBatch] = []
    for batch in _batches(source, kind, path):
        batches.append(batch)
        if sum(batch.nbytes for batch in batches) >= part_bytes:
            yield Segment(name, first, _stream(batches))
            first += sum(batch.num_rows for batch in batches)
            batches = []
    if batches:
        yield Segment(name, first, _stream(batches))


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
    except pa.ArrowException as error:
        told = str(error).splitlines()[0]
        raise CorpusError(f"{path}: not a whole {_NAMES[kind]} file ({told}): get it again") from error


def _stream(batches: list[pa.RecordBatch]) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def rows(segment: Segment, source: SourceSettings, prefix: str) -> Iterator[Row]:
    """The rows of a segment, good or bad. prefix: before a row's number, where that is its id."""
    table = pa.ipc.open_stream(segment.data).read_all()
    texts = table.column(source.text)
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.large_binary())  # a file may hold bytes that are no UTF-8
    ids = table.column(source.id).to_pylist() if source.id else [None] * len(texts)
    for number, (local, text) in enumerate(zip(ids, texts.to_pylist(), strict=True), segment.first):
        place = f"{segment.file} row {number}"
        value = decoded(text, "utf-8") if isinstance(text, bytes) else text
        if isinstance(text, bytes) and (wrong := undecodable_row(value, place, "utf-8", local)):
            yield wrong
            continue
        record = {source.text: value} | ({source.id: local} if source.id else {})
        yield checked_row(record, place, source, f"{prefix}{number}", str(value or ""))
