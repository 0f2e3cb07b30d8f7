"""DuckDB with a bound on memory and a folder to spill into. Integer aggregates only: sums of doubles vary."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from corpus.parts import write_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["connect", "same_size_batches", "view_without", "write_query"]

_MEMORY_LIMIT = "512MB"
_BATCH_ROWS = 1 << 16


@contextmanager
def connect(output: Path | None, threads: int) -> Iterator["DuckDBPyConnection"]:
    """A database in memory that spills into the scratch folder of `output`; None: where the system keeps such files."""
    import duckdb  # not at the top: workers import this module and never connect

    scratch = None if output is None else output / "work"
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="spill-", dir=scratch) as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY_LIMIT,
            "threads": threads,
            "temp_directory": spill,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        }
        with duckdb.connect(config=settings) as connection:
            yield connection


def same_size_batches(reader: pa.RecordBatchReader, rows: int = _BATCH_ROWS) -> Iterator[pa.Table]:
    """The reader's rows in tables of exactly `rows`, the last one shorter: row groups that depend on the rows alone."""
    held: list[pa.RecordBatch] = []
    for batch in reader:
        while batch.num_rows:
            taken = batch.slice(0, rows - sum(one.num_rows for one in held))
            held.append(taken)
            batch = batch.slice(taken.num_rows)
            if sum(one.num_rows for one in held) == rows:
                yield _joined(held)
                held = []
    if held:
        yield _joined(held)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).combine_chunks()


def view_without(
    database: "DuckDBPyConnection", name: str, files: Sequence[Path], without: Sequence[Path], columns: str = "*"
) -> None:
    """A view of the files' rows less those whose (part, position) is in a file of `without`. columns: as in SELECT."""
    database.read_parquet([str(path) for path in files]).create_view(f"all_{name}")
    database.execute("CREATE TABLE gone (part INTEGER, position INTEGER)")
    for path in without:
        database.execute("INSERT INTO gone SELECT part, position FROM read_parquet(?)", [str(path)])
    database.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM all_{name} ANTI JOIN gone USING (part, position)")


def write_query(
    database: "DuckDBPyConnection",
    query: str,
    schema: pa.Schema,
    path: Path,
    output: Path,
    given: Mapping[str, object] | None = None,
) -> int:
    """What the query finds as one file; returns the number of rows. given: values of its parameters."""
    reader = database.sql(query, params=dict(given or {})).to_arrow_reader()
    return write_tables(path, schema, same_size_batches(reader), output)
