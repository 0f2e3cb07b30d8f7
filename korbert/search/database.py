"""The file of an index: an SQLite database of texts, their fields, vectors and postings.

table       one row for
meta        each fact about the index: format, model, settings, version (counts the changes)
texts       each text: its number, id, fields (JSON), terms (JSON), text
fields      each name of a field
vectors     each text: its vector, float32
postings    each term and 65,536 numbers of texts: see postings.py

The file is in WAL mode: a reader sees the last committed state when it began, whatever a writer beside it does, and
writers wait for each other. What a killed process has not committed is gone, and nothing else.
"""

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from korbert.errors import ArtifactError
from korbert.names import is_litter

FILE = "index.sqlite"
FORMAT = 2
_EARLIER = "index.json"  # the record of format 1, which had files of its own
_WAIT_S = 60.0  # for another writer, which holds the lock for a second or so at a time
_SCHEMA = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE texts (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, fields TEXT NOT NULL,
                        terms TEXT NOT NULL, text TEXT NOT NULL);
    CREATE TABLE fields (name TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE vectors (number INTEGER PRIMARY KEY, vector BLOB NOT NULL);
    CREATE TABLE postings (term TEXT NOT NULL, bucket INTEGER NOT NULL, entries BLOB NOT NULL, UNIQUE (term, bucket));
"""


def is_index(folder: Path) -> bool:
    """Whether there is an index in the folder, and not only the beginnings of one.

    ArtifactError for a file, a broken link, an index of an earlier format, and a folder with other files.
    """
    if (folder / FILE).is_file():
        with _connected(folder, "ro") as database:
            return _has_schema(database)
    is_free = folder.is_dir() and all(is_litter(path.name) for path in folder.iterdir())
    if (folder.is_symlink() or folder.exists()) and not is_free:
        raise _no_index(folder, "exists and is not an index: name a new folder")
    return False


def _no_index(folder: Path, what: str) -> ArtifactError:
    if (folder / _EARLIER).is_file():
        what = (
            "is an index of an earlier version of korbert: make it anew in a new folder, with `korbert index MODEL"
            " CORPUS --output FOLDER`"
        )
    return ArtifactError(f"{folder}: {what}")


def create(folder: Path, meta: dict[str, Any]) -> None:
    """Creates an empty index, unless another process has just done so."""
    folder.mkdir(parents=True, exist_ok=True)
    with _connected(folder, "rwc") as database:
        database.execute("PRAGMA page_size = 16384")  # 15 vectors of 256 numbers; of the default size, 3
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")
        if not _has_schema(database):
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
            facts = {"format": FORMAT, **meta, "version": 0, "texts": 0, "length": 0}
            database.executemany("INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in facts.items()])
        database.execute("COMMIT")


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the index as it is now. ArtifactError if there is none, it is damaged, or of another format."""
    with _connected(folder, "ro") as database:
        database.execute("BEGIN")
        if not _has_schema(database):
            raise ArtifactError(f"{folder}: is not an index: make one with `korbert index`")
        if (there := read_meta(database, "format")) != FORMAT:
            raise ArtifactError(f"{folder / FILE}: format {there}, this version reads {FORMAT}: make the index again")
        yield database


@contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose changes are committed at the end, or not at all. Waits for another writer, up to a minute."""
    with _connected(folder, "rw") as database:
        database.execute("PRAGMA cache_size = -262144")  # 256 MiB: a commit of 4,096 texts
        database.execute("BEGIN IMMEDIATE")
        yield database
        add_to_meta(database, version=1)
        database.execute("COMMIT")


def read_meta(database: sqlite3.Connection, key: str) -> Any:
    """A fact about the index."""
    return json.loads(database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0])


def add_to_meta(database: sqlite3.Connection, **more: int) -> None:
    """Adds to numbers among the facts: SQLite would count all texts and terms one by one."""
    database.executemany("UPDATE meta SET value = value + ? WHERE key = ?", ((n, key) for key, n in more.items()))


def _has_schema(database: sqlite3.Connection) -> bool:
    """Whether the process that created the file got as far as its first commit."""
    return bool(database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0])


@contextmanager
def _connected(folder: Path, mode: Literal["ro", "rw", "rwc"]) -> Iterator[sqlite3.Connection]:
    """A connection to read (ro), to write (rw), or to create the file if need be (rwc)."""
    path = folder / FILE
    if mode != "rwc" and not path.is_file():
        raise _no_index(folder, "is not an index: make one with `korbert index`")
    # SQLite writes beside the file even to read it, unless nobody can change it.
    is_fixed = mode == "ro" and not os.access(folder, os.W_OK) and not path.with_name(f"{FILE}-wal").exists()
    how = "ro&immutable=1" if is_fixed else "rwc" if mode == "rwc" else "rw"
    try:
        address = f"{path.absolute().as_uri()}?mode={how}"
        with closing(sqlite3.connect(address, timeout=_WAIT_S, isolation_level=None, uri=True)) as database:
            yield database  # an open transaction is undone by closing
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the details of extended codes
        if code == sqlite3.SQLITE_BUSY:
            raise ArtifactError(
                f"{folder}: another process has been writing this index for {_WAIT_S:.0f} seconds: wait until it has"
                " ended"
            ) from None
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise OSError(errno.ENOSPC if code == sqlite3.SQLITE_FULL else errno.EIO, str(error), str(path)) from None
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise ArtifactError(f"{path}: is damaged ({error}): make the index again") from None
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise ArtifactError(f"{path}: {error}: check the rights to the folder and its files") from None
        raise
