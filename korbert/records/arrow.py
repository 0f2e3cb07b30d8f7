"""Reads Parquet files, Arrow files and folders saved by `datasets`. Class ids of `datasets` become class names."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.records.compression import File, open_file
from korbert.records.encodings import decode_bytes
from korbert.records.jsons import cell_of
from korbert.records.table import Records, Table
from korbert.system import read_small

_BATCH_ROWS = 1_024  # held as Python objects: a row may be a book
_NAME = re.compile(r"(?!\.\.?$)[^/\\\x00-\x1f]+")  # of a file or folder, not a path
_STREAM_MARK = b"\xff\xff\xff\xff"  # magic bytes of an Arrow stream; files start with ARROW1


def dataset_files(folder: File) -> list[File]:
    """The Arrow files of a Dataset saved by `datasets`, in order.

    Raises CorpusError for a folder with several splits, which it lists, and for any other folder.
    """
    record = folder / "dataset_dict.json"
    if record.is_file():
        parts = [folder / name for name in _names(record, _json(record, "splits"))]
        if len(parts) > 1:
            raise CorpusError(
                "{folder}: has the splits {parts}: give one, as {first}",
                folder=folder,
                parts=", ".join(part.name for part in parts),
                first=parts[0],
            )
        folder = parts[0]
    state = folder / "state.json"
    if not state.is_file():
        entries = folder.iterdir() if folder.is_dir() else ()
        file_names = sorted(path.name for path in entries if path.is_file() and not path.name.startswith("."))
        content = Message("holds {files}", files=", ".join(file_names[:10])) if file_names else Message("holds no file")
        raise CorpusError(
            "{folder}: is a folder that `datasets` has not saved ({there}): give a file", folder=folder, there=content
        )
    data_files = _json(state, "_data_files")
    if isinstance(data_files, list):
        data_files = [part.get("filename") if isinstance(part, dict) else None for part in data_files]
    files = [folder / name for name in _names(state, data_files)]
    for path in files:
        if not path.is_file():
            raise CorpusError(
                "{path}: no such file, and {folder} names it: get the folder again",
                path=path,
                folder=state,
            )
    return files


def _json(path: File, key: str) -> object:
    """The value of a key in a record of `datasets`."""
    try:
        content = read_small(path) if isinstance(path, Path) else path.read_bytes()
        return json.loads(content)[key]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorpusError(
            "{path}: not a record of `datasets` with {key!r} ({error}): get the folder again",
            path=path,
            key=key,
            error=error,
        ) from error


def _names(record: File, names: object) -> list[str]:
    """Names of files or folders next to a record. CorpusError for anything else, such as a path that leads out."""
    name_list: list[Any] = names if isinstance(names, list) and names else [[names]]
    for name in name_list:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise CorpusError(
                "{record}: {name!r:.60} is not the name of a file or folder next to it: get the folder again",
                record=record,
                name=name,
            )
    return name_list


def read_batches(paths: Sequence[File], form: str) -> Table:
    """Opens files of one schema as a table: of Parquet if that is the form, else Arrow files or streams.

    Reads only the columns asked for, _BATCH_ROWS rows at a time. form: for messages, too.
    """
    with _open_batches(paths[0], form) as (schema, _):
        pass

    def file_batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        for path in paths:
            with _open_batches(path, form) as (_, batches):
                yield from batches(columns)

    return _table(schema, form, file_batches)


def table_of(rows: pa.Table) -> Table:
    """A table of Arrow in memory as one of records."""
    return _table(rows.schema, "Arrow", lambda columns: rows.select(columns).to_batches(_BATCH_ROWS))


def _table(schema: pa.Schema, form: str, batches: Callable[[list[str]], Iterable[pa.RecordBatch]]) -> Table:
    """Makes a table of record batches. batches: returns the batches with the given columns of the schema."""
    names: Mapping[str, list[str]] = {}
    with suppress(KeyError, ValueError, TypeError, AttributeError):
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        # A list has its classes in the feature of its items.
        inner = {column: feature.get("feature", feature) for column, feature in features.items()}
        names = {column: item["names"] for column, item in inner.items() if item.get("_type") == "ClassLabel"}

    def holder_batches(wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from batches(list(dict.fromkeys(_held(column, schema) for column in wanted)))

    def read(wanted: Sequence[str]) -> Records:
        return enumerate(chain.from_iterable(rows_in(batch, wanted, names) for batch in holder_batches(wanted)), 1)

    return Table(tuple(_column_names(schema)), form, "", "record", read, batches=holder_batches)


@contextmanager
def _open_batches(path: File, form: str) -> Iterator[tuple[pa.Schema, Callable[[list[str]], Iterable[pa.RecordBatch]]]]:
    """The schema of a file, and its batches with some columns. Errors of pyarrow become a CorpusError."""
    try:
        if form == "Parquet":
            with open_file(path) as opened, pq.ParquetFile(opened) as file:
                yield file.schema_arrow, lambda columns: file.iter_batches(_BATCH_ROWS, columns=columns)
            return
        source: Any = pa.memory_map(str(path)) if isinstance(path, Path) else open_file(path)  # mapped, not read
        is_stream = source.read(4) == _STREAM_MARK
        source.seek(0)
        with pa.ipc.open_stream(source) if is_stream else pa.ipc.open_file(source) as file:
            yield file.schema, lambda columns: file.read_all().select(columns).to_batches(_BATCH_ROWS)
    except (pa.ArrowException, OSError) as error:  # Arrow also raises OSError
        cause = re.sub(r"\w*Exception: ", "", str(error) or type(error).__name__).splitlines()[0]
        raise CorpusError(
            "{path}: not a whole Parquet or Arrow file ({cause}): get it again", path=path, cause=cause
        ) from error


def rows_in(batch: pa.RecordBatch, wanted: Sequence[str], names: Mapping[str, list[str]]) -> Iterator[list[object]]:
    """Yields the cells of each row in the wanted columns. names: column -> names of its classes."""
    columns = {name: _cells(batch.column(name)) for name in batch.schema.names}
    cells = []
    for column in wanted:
        holder = _held(column, batch.schema)
        values = columns[holder]
        if column != holder:
            values = [cell_of({holder: value}, column) for value in values]
        if column in names:
            values = [_class_name(value, names[column]) for value in values]
        cells.append(values)
    yield from map(list, zip(*cells, strict=True))


def _held(column: str, schema: pa.Schema) -> str:
    """Returns the column of the schema that holds `column`: itself, or the struct of which it is a field."""
    holders: list[str] = [name for name in schema.names if column.startswith(f"{name}.")]  # a name may have dots
    return column if column in schema.names else max(holders, key=len)


def _column_names(fields: Iterable[pa.Field], before: str = "") -> Iterator[str]:
    """Column names, with fields of structs as dotted paths."""
    for field in fields:
        yield f"{before}{field.name}"
        if pa.types.is_struct(field.type):
            yield from _column_names(field.type.fields, f"{before}{field.name}.")


def _cells(column: pa.Array) -> list[object]:
    """The cells of a column. Bytes become texts, in which those that are not UTF-8 are lone surrogates."""
    try:
        cells = column.to_pylist()
    except UnicodeDecodeError:
        cells = column.cast(pa.binary()).to_pylist()
    return [decode_bytes(cell, "utf-8") if isinstance(cell, bytes) else cell for cell in cells]


def _class_name(value: object, names: Sequence[str]) -> object:
    """The name of a class by its number, or of each in a list. -1, no label in `datasets`, becomes None."""
    if isinstance(value, list):
        return [_class_name(part, names) for part in value]
    if type(value) is int and -1 <= value < len(names):
        return None if value == -1 else names[value]
    return value
