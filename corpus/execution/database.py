"""DuckDB with a memory limit and a folder to spill into. Integer aggregates only: sums of doubles vary between runs."""

import os
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from korbert.corpus.execution.parts import read_table, unreadable, write_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Database: TypeAlias = "DuckDBPyConnection"

_MEMORY_LIMIT = "512MB"
_BATCH_ROWS = 1 << 16
_ENDING = frozenset((signal.SIGINT, signal.SIGTERM))


@contextmanager
def connect(
    output: Path | None, threads: int, *, without: Sequence[Path] = (), **views: Sequence[Path]
) -> Iterator[Database]:
    """A database in memory that spills into the scratch folder of `output`; None: into the system's temporary folder.

    views: name -> the Parquet files of its rows; a name without files gets no view. without: files of the rows
    (part, position, ..) that every view leaves out. Ctrl-C ends a query at once, with KeyboardInterrupt. Raises
    ArtifactError if a file is damaged.
    """
    import duckdb  # not at the top: workers import this module and never connect

    if output is not None:
        (output / "work").mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="spill-", dir=output and output / "work") as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY_LIMIT,
            "threads": threads,
            "temp_directory": spill,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        }
        with duckdb.connect(config=settings) as connection, _interruptible(connection):
            try:
                for name, files in {"gone": without, **views}.items():
                    if files:
                        paths = list(map(_literal, files))
                        rows = connection.read_parquet(paths, hive_partitioning=False, union_by_name=name == "gone")
                        if without and name != "gone":
                            rows.create_view(f"all_{name}")
                            rows = connection.sql(f"SELECT * FROM all_{name} ANTI JOIN gone USING (part, position)")
                        rows.create_view(name)
                yield connection
            except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
                if "interrupt" in str(error).lower():  # DuckDB's InterruptException, a RuntimeError, or one of Arrow's
                    raise KeyboardInterrupt from error
                if not isinstance(error, duckdb.OutOfMemoryException):
                    for path in chain(without, *views.values()):
                        if str(path.absolute()) in str(error):
                            raise unreadable(path, error) from error
                        read_table(path)  # raises an error with its name if it is damaged
                raise


@contextmanager
def _interruptible(connection: Database) -> Iterator[None]:
    """Ends the running query on a signal.

    Python runs its signal handlers only after the query, which may take hours. The number of the signal, however, is
    written to a pipe at once, and a thread reads it there.
    """
    import duckdb

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    previous_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def watch() -> None:
        while numbers := os.read(reading, 64):
            if not _ENDING.isdisjoint(numbers):
                with suppress(duckdb.ConnectionException):  # closed already: the signal came while this was ending
                    connection.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous_fd)
        os.close(writing)
        watcher.join()
        os.close(reading)


def _literal(path: Path) -> str:
    """Returns a DuckDB pattern that matches this file alone: DuckDB would expand *, ?, [ and ~ in a path."""
    text = str(path.absolute())
    return re.sub(r"[*?[\\]", r"[\g<0>]", text) if re.search(r"[*?[]", text) else text


def result_tables(database: Database, query: str, **parameters: object) -> Iterator[pa.Table]:
    """Yields the result of a query in tables of exactly _BATCH_ROWS rows; the last one may be shorter.

    So the row groups of a file depend on the rows alone, not on DuckDB's batches.
    """
    reader = database.sql(query, params=parameters).to_arrow_reader()
    pending = reader.schema.empty_table()
    for batch in reader:
        pending = pa.concat_tables([pending, pa.Table.from_batches([batch])])
        while pending.num_rows >= _BATCH_ROWS:
            yield pending.slice(0, _BATCH_ROWS).combine_chunks()
            pending = pending.slice(_BATCH_ROWS)
    if pending.num_rows:
        yield pending.combine_chunks()


def write_query(
    database: Database, query: str, schema: pa.Schema, path: Path, output: Path, **parameters: object
) -> int:
    """Writes the result of the query as one file; returns the number of rows."""
    return write_tables(path, schema, result_tables(database, query, **parameters), output)
