"""Rows that a caller of Python holds, in lists, frames or data sets: as dicts, or as a file that all else reads."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from korbert.errors import SettingsError
from korbert.messages import Message, join_messages, reason

_TUPLES: Mapping[int, Sequence[str]] = {2: ("text", "label"), 3: ("text", "pair", "label")}
_TAKEN = Message("give a path, a list of tuples or dicts, a frame of pandas or polars, or a Dataset")


def write_rows(rows: Any, folder: Path, name: str, columns: Mapping[int, Sequence[str]] = _TUPLES) -> Path:
    """Writes rows below a folder as NAME.jsonl or NAME.arrow; the same rows give the same bytes. Returns the path.

    columns: names of the cells of tuples, by their number. SettingsError for anything else than rows.
    """
    if isinstance(rows, Mapping):  # a DatasetDict, or columns
        raise SettingsError(
            "{name}: is a {type} of {rows}: give one of these",
            name=name,
            type=type(rows).__name__,
            rows=", ".join(map(str, rows)),
        )
    if (table := _table_of(rows, name)) is not None:
        import pyarrow as pa

        path = folder / f"{name}.arrow"
        with pa.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)
        return path
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise SettingsError("{name}: is a {type}: {taken}", name=name, type=type(rows).__name__, taken=_TAKEN)
    path = folder / f"{name}.jsonl"
    lines = [_line(row, f"{name}[{number}]", columns) for number, row in enumerate(rows)]
    if not lines:
        raise SettingsError("{name}: holds no row: {taken}", name=name, taken=_TAKEN)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogatepass")
    return path


def list_rows(rows: Any) -> Any:
    """The rows of a frame or a table as dicts, and the cells of a series; other rows unchanged."""
    if hasattr(rows, "iloc"):  # of pandas: NaN and NA are cells without a value
        rows = rows.astype(object).where(rows.notna(), None)
        return rows.to_dict("records") if hasattr(rows, "columns") else rows.tolist()
    if hasattr(rows, "to_dicts"):  # of polars
        return rows.to_dicts()
    return rows.to_pylist() if hasattr(rows, "to_pylist") else rows


def _table_of(rows: Any, name: str) -> Any:
    """The table of Arrow of a frame or a data set, classes with their names; None for other rows."""
    import pyarrow as pa

    try:
        if hasattr(rows, "iloc") and hasattr(rows, "columns"):  # of pandas
            return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(None)
        if hasattr(rows, "features") and hasattr(rows, "with_format"):  # of datasets, maybe selected or shuffled
            return rows.with_format("arrow")[:].replace_schema_metadata(rows.features.arrow_schema.metadata)
        if isinstance(rows, pa.Table) or hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
    except pa.ArrowException as error:
        raise SettingsError(
            "{name}: {cause}: give each column values of one type",
            name=name,
            cause=str(error).splitlines()[0],
        ) from None
    return None


def _line(row: object, name: str, columns: Mapping[int, Sequence[str]]) -> str:
    """A row as JSON."""
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        if len(row) not in columns:
            raise SettingsError(
                "{name}: a tuple of {count}: give {known}, or a dict with a key for each column",
                name=name,
                count=len(row),
                known=join_messages((f"({', '.join(names)})" for names in columns.values()), " or "),
            )
        row = dict(zip(columns[len(row)], row, strict=True))
    if not isinstance(row, Mapping):
        raise SettingsError("{name}: {row!r:.40} is not a row: {taken}", name=name, row=row, taken=_TAKEN)
    try:
        return json.dumps(row, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise SettingsError("{name}: {cause}: give texts, numbers and lists", name=name, cause=reason(error)) from None


def _plain(value: object) -> object:
    """Converts a number or an array of numpy to a Python number or list."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(Message("a {type} cannot be written as JSON", type=type(value).__name__))
