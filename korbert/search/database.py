"""The file of an index: an SQLite database of texts, their fields, vectors and postings.

table       one row for
meta        each fact about the index: model, settings, identity, version (counts the changes), numbers of rows
texts       each text: its number and id; fields (JSON), terms (JSON, packed by zlib)
passages    each passage: its number; the text that it is of, from begin to end (characters), from first to last (terms)
vectors     each passage: its vector, float32
postings    each term and 65,536 numbers of passages: see words.py

The last column of each row is a checksum of the others, which is compared whenever the row is read. `verify` finds
lost rows when an index is opened, and `check` reads all.

The file is in WAL mode: a reader sees the state last committed when it began, whatever a writer does meanwhile, and
writers wait for each other. What a killed process has not committed is gone, and nothing else.
"""

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal
from zlib import crc32

from korbert.errors import ArtifactError
from korbert.messages import Message, reason
from korbert.names import is_litter
from korbert.system import JsonObject

FILE = "index.sqlite"
FORMAT = 4  # the user_version of the file
_APPLICATION = 0x6B6F7262  # "korb", the application_id of the file
_EARLIER = "index.json"  # the record of format 1, which had files of its own
_ANEW = Message("make it anew in a new folder, with `korbert index MODEL CORPUS --output FOLDER`")
_WAIT_S = 60.0  # for another writer, which holds the lock for about a second at a time
_QUICK_BYTES = 256 * 2**20  # larger files take SQLite more than half a second to check
_FACTS = (  # in meta
    "model", "settings", "size", "identity", "version", "texts", "passages", "owners", "length", "keys", "fields",
    "numbered",
)  # fmt: skip
_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE texts (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, fields TEXT NOT NULL,"
    " terms BLOB NOT NULL, text TEXT NOT NULL, checksum INTEGER NOT NULL)",
    'CREATE TABLE passages (number INTEGER PRIMARY KEY AUTOINCREMENT, text INTEGER NOT NULL, "begin" INTEGER NOT NULL,'
    ' "end" INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, checksum INTEGER NOT NULL)',
    "CREATE INDEX passages_of ON passages (text)",
    "CREATE TABLE vectors (number INTEGER PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE postings (term TEXT NOT NULL, bucket INTEGER NOT NULL, entries BLOB NOT NULL,"
    " checksum INTEGER NOT NULL, UNIQUE (term, bucket))",
)


class Damage(Exception):
    """Something in the file is not as it was written. str: what."""


def checksum(*values: object) -> int:
    """CRC-32 of the values with their types and sizes."""
    crc = 0
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        crc = crc32(data, crc32(f"{type(value).__name__} {len(data)} ".encode(), crc))
    return crc


def checked_row(what: str, *row: object) -> tuple[Any, ...]:
    """Returns the row without its last value, the checksum. Damage if the checksum does not fit the other values."""
    values = row[:-1]
    if checksum(*values) != row[-1]:
        raise Damage(Message("{what} is not as it was written", what=what))
    return values


def is_index(folder: Path) -> bool:
    """Whether there is an index in the folder, and not only the beginnings of one.

    ArtifactError for a file, a broken link, an index of an earlier format, a database of another program, and a folder
    with other files.
    """
    if (folder / FILE).is_file():
        with _connection(folder, "ro") as database:
            return _has_schema(database)
    is_free = folder.is_dir() and all(is_litter(path.name) for path in folder.iterdir())
    if (folder.is_symlink() or folder.exists()) and not is_free:
        raise _no_index(folder, Message("exists and is not an index: name a new folder"))
    return False


def _no_index(folder: Path, what: Message) -> ArtifactError:
    if (folder / _EARLIER).is_file():
        what = Message("is an index of an earlier version of korbert: {anew}", anew=_ANEW)
    return ArtifactError("{folder}: {what}", folder=folder, what=what)


def create(folder: Path, meta: JsonObject) -> None:
    """Creates an empty index, unless another process has just done so."""
    folder.mkdir(parents=True, exist_ok=True)
    with _connection(folder, "rwc") as database:
        database.execute("PRAGMA page_size = 16384")  # 15 vectors of 256 numbers; of the default size, 3
        # Before WAL mode, so that the file itself says whose it is from its first byte on.
        database.execute(f"PRAGMA application_id = {_APPLICATION}")
        database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")
        if not _has_schema(database):
            for statement in _TABLES:
                database.execute(statement)
            numbers = dict.fromkeys(("version", "texts", "passages", "owners", "length", "keys", "numbered"), 0)
            write_meta(database, identity=token_hex(16), fields=[], **meta, **numbers)
        database.execute("COMMIT")


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the index as it is now. ArtifactError if there is none, it is damaged, or of another format."""
    with _connection(folder, "ro") as database:
        database.execute("BEGIN")
        if not _has_schema(database):
            raise ArtifactError("{folder}: is not an index: make one with `korbert index`", folder=folder)
        yield database


@contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose changes are committed at the end, or not at all. Waits for another writer, up to a minute."""
    with _connection(folder, "rw") as database:
        database.execute("PRAGMA cache_size = -262144")  # 256 MiB: a commit of 4,096 passages
        database.execute("BEGIN IMMEDIATE")
        yield database
        add_to_meta(database, version=1)
        database.execute("COMMIT")


def read_meta(database: sqlite3.Connection, key: str) -> Any:
    """A fact about the index."""
    row = database.execute("SELECT value, checksum FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None:
        raise Damage(Message("{key} is missing", key=key))
    return json.loads(checked_row(key, key, *row)[1])


def write_meta(database: sqlite3.Connection, **facts: object) -> None:
    """Writes facts about the index."""
    rows = [(key, json.dumps(value, ensure_ascii=False)) for key, value in facts.items()]
    database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", [(*row, checksum(*row)) for row in rows])


def add_to_meta(database: sqlite3.Connection, **more: int) -> None:
    """Adds to facts that are numbers. They are kept because SQLite would count all texts and terms one by one."""
    write_meta(database, **{key: read_meta(database, key) + number for key, number in more.items()})


def verify(database: sqlite3.Connection) -> None:
    """Finds lost rows and pages, when an index is opened. Damage if there are any.

    Of a file of more than 256 MiB only what the search for words relies on is read, in a second or two for a million
    texts: `check` reads it all.
    """
    for key in _FACTS:
        read_meta(database, key)
    pages, page_bytes = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    tables = {"texts": "texts", "passages": "passages"}
    if pages * page_bytes <= _QUICK_BYTES:
        _verify_pages(database, "quick_check")
        tables["vectors"] = "passages"
    for table, key in tables.items():
        num_written = read_meta(database, key)
        (num_rows,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
        if num_rows != num_written:
            raise Damage(
                Message(
                    "{rows:,} rows of {table}, {written:,} were written",
                    rows=num_rows,
                    table=table,
                    written=num_written,
                )
            )
    # Read from the index of (term, bucket): a term that it has lost is found nowhere, and nothing else would say so.
    keys = sum(checksum(*key) for key in database.execute("SELECT term, bucket FROM postings"))
    if keys != read_meta(database, "keys"):
        raise Damage(Message("the index of terms is not as it was written"))


def check(folder: Path) -> int:
    """Reads all of an index, and returns its number of texts. ArtifactError if anything is not as it was written."""
    with reading(folder) as database:
        _verify_pages(database, "integrity_check")
        verify(database)
        for table in ("meta", "texts", "passages", "vectors", "postings"):
            for row in database.execute(f"SELECT * FROM {table}"):
                checked_row(f"a row of {table}", *row)
        return int(read_meta(database, "texts"))


def _verify_pages(database: sqlite3.Connection, pragma: Literal["quick_check", "integrity_check"]) -> None:
    (result,) = database.execute(f"PRAGMA {pragma}(1)").fetchone()
    if result != "ok":
        raise Damage(" ".join(result.split()))


def _has_schema(database: sqlite3.Connection) -> bool:
    """Whether the process that created the file got as far as its first commit. Damage if the tables are not ours."""
    statements = {statement for (statement,) in database.execute("SELECT sql FROM sqlite_master")}
    if statements and not statements.issuperset(_TABLES):
        raise Damage(Message("its tables are not as they were made"))
    return bool(statements)


def _check_header(folder: Path) -> None:
    """Reads from the file itself whose database it is: SQLite would write next to it. ArtifactError if not ours."""
    path = folder / FILE
    with path.open("rb") as file:
        header = file.read(72)
    if not header and not path.is_symlink():  # another process is creating it, or was killed
        return
    version = int.from_bytes(header[60:64], "big")
    if header[:16] != b"SQLite format 3\0":
        raise Damage(Message("it does not begin as a database does"))
    if int.from_bytes(header[68:72], "big") != _APPLICATION:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not {"meta", "texts", "fields", "vectors", "postings"} <= names:
            raise ArtifactError("{path}: is a database of another program: name a new folder", path=path)
        version = 2
    if version != FORMAT:
        raise ArtifactError(
            "{path}: is an index of format {version}, this version reads {format}: {anew}",
            path=path,
            version=version,
            format=FORMAT,
            anew=_ANEW,
        )


@contextmanager
def _connection(folder: Path, mode: Literal["ro", "rw", "rwc"]) -> Iterator[sqlite3.Connection]:
    """A connection to read (ro), to write (rw), or to create the file if need be (rwc)."""
    path = folder / FILE
    if mode != "rwc" and not path.is_file():
        raise _no_index(folder, Message("is not an index: make one with `korbert index`"))
    # SQLite writes next to the file even to read it, unless nobody can change it.
    is_fixed = mode == "ro" and not os.access(folder, os.W_OK) and not path.with_name(f"{FILE}-wal").exists()
    open_mode = "ro&immutable=1" if is_fixed else "rwc" if mode == "rwc" else "rw"
    try:
        if path.is_file():
            _check_header(folder)
        address = f"{path.absolute().as_uri()}?mode={open_mode}"
        with closing(sqlite3.connect(address, timeout=_WAIT_S, isolation_level=None, uri=True)) as database:
            yield database  # an open transaction is undone by closing
    except Damage as error:
        what = reason(error)
        raise ArtifactError("{path}: is damaged ({error}): make the index again", path=path, error=what) from None
    except sqlite3.DatabaseError as error:
        raise _translate_error(error, path) from None


def _translate_error(error: sqlite3.DatabaseError, path: Path) -> Exception:
    """An error of SQLite as one of ours. An error of our own code stays as it is."""
    extended = getattr(error, "sqlite_errorcode", None)
    code = 0 if extended is None else extended & 0xFF
    is_text = isinstance(error, sqlite3.OperationalError) and extended is None  # Python's: it is not UTF-8
    if code == sqlite3.SQLITE_BUSY:
        return ArtifactError(
            "{parent}: another process has been writing this index for {wait_s:.0f} seconds: wait until it has ended",
            parent=path.parent,
            wait_s=_WAIT_S,
        )
    damage = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_TOOBIG)
    if is_text or code in damage or extended == sqlite3.SQLITE_IOERR_SHORT_READ:
        return ArtifactError(
            "{path}: is damaged ({split:.200}): make the index again", path=path, split=" ".join(str(error).split())
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        number = errno.ENOSPC if code == sqlite3.SQLITE_FULL else errno.EIO
        return OSError(number, str(error), str(path))
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return ArtifactError("{path}: {error}: check the rights to the folder and its files", path=path, error=error)
    return error
