"""The files of an index: immutable parts, and a record that names them and is replaced atomically.

index.json                the record: model, settings, parts; with its own checksum
part-00003.arrow          id, text and terms of each row
part-00003.npy            their vectors, of length 1
part-00003.usearch        a graph of them, in large parts of large indexes
words-00004/              the ranker of bm25s over all rows, built from the terms
correction.npz, piece_counts.parquet    the correction and the counts of the settings, if any
lock                      held by the process that writes

Adding writes new parts, then the record; removing writes row numbers into the record. A crash leaves files that no
record names, which the next writer deletes. Readers keep their files open, so that deleted ones stay readable.
"""

import contextlib
import errno
import fcntl
import logging
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from korbert.durable import aside_of, checksummed, sha256_of, sync, verified, write_aside, write_whole
from korbert.errors import ArtifactError
from korbert.scratch import remove
from korbert.vectors import graph
from korbert.vectors.words import Words

__all__ = [
    "RECORD",
    "PartRecord",
    "Record",
    "Row",
    "WordsRecord",
    "check_file",
    "check_place",
    "delete_strays",
    "due",
    "file_record",
    "locked",
    "read_record",
    "table_of",
    "write_graphs",
    "write_part",
    "write_record",
    "write_words",
]

_logger = logging.getLogger(__name__)

FORMAT = 1
RECORD = "index.json"
_LOCK = "lock"
_SCHEMA = pa.schema(
    [("id", pa.large_string()), ("text", pa.large_string()), ("terms", pa.large_list(pa.large_string()))]
)
_PART = re.compile(r"\.korbert-.+\.tmp|part-\d{5,}\.(arrow|npy|usearch)")
_RANKER = re.compile(r"words-\d{5,}")
_RANKER_FILE = re.compile(r"rows\.npy|.+\.index\.(npy|json)")
_FAN = 16  # parts of similar size that are merged into one
_REMOVED_SHARE = 0.25  # removed rows from which on a part is rewritten

Row = tuple[str, str, list[str]]
"""id, text, terms."""


class FileRecord(BaseModel, frozen=True, extra="forbid", strict=True):
    size: int
    sha256: str


class PartRecord(BaseModel, frozen=True, extra="forbid", strict=True):
    """A part: its number of rows, the removed ones, and its files by ending."""

    name: str
    rows: int
    removed: list[int] = []
    files: dict[str, FileRecord]

    @property
    def live(self) -> int:
        return self.rows - len(self.removed)


class WordsRecord(BaseModel, frozen=True, extra="forbid", strict=True):
    """The folder of bm25s, and its files."""

    name: str
    files: dict[str, FileRecord]


class Record(BaseModel, frozen=True, extra="forbid", strict=True):
    """index.json. model: digest and folder. settings: VectorSettings. size: numbers per vector. number: of file names
    used so far, so that none is used twice. words: the ranker of these parts, if any. files: of the whole index."""

    format: int = FORMAT
    model: dict[str, str]
    settings: dict[str, Any]
    size: int
    number: int = 0
    parts: list[PartRecord] = []
    words: WordsRecord | None = None
    files: dict[str, FileRecord] = {}


def read_record(folder: Path) -> Record:
    """Reads the record. Raises ArtifactError if it is missing, damaged, or of another version."""
    path = folder / RECORD
    try:
        record = Record.model_validate(verified(path.read_bytes()))
    except FileNotFoundError:
        raise ArtifactError(f"{folder}: is not an index: make one with `korbert index`") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ArtifactError(f"{path}: {place}: {first['msg']}: make the index again") from None
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path}: cannot be read ({error}): make the index again") from None
    if record.format != FORMAT:
        raise ArtifactError(f"{path}: format {record.format}, this version reads {FORMAT}: make the index again")
    return record


def check_place(folder: Path) -> None:
    """ArtifactError for a file, a broken link, and a folder that is neither empty nor an index."""
    is_new = not folder.is_symlink() and not folder.exists()
    if not is_new and not (folder.is_dir() and ((folder / RECORD).exists() or not any(folder.iterdir()))):
        raise ArtifactError(f"{folder}: exists and is not an index: name a new folder")


def write_record(folder: Path, record: Record) -> None:
    """Replaces the record, after all files that it names are on disk."""
    sync(folder)
    write_whole(folder / RECORD, checksummed(record.model_dump()))
    sync(folder)


def check_file(path: Path, file: FileRecord) -> None:
    """ArtifactError if the file has another size or digest."""
    try:
        if (size := path.stat().st_size) != file.size:
            raise ArtifactError(f"{path}: has {size:,} bytes, {file.size:,} were written: make the index again")
        if sha256_of(path) != file.sha256:
            raise ArtifactError(f"{path}: was changed since it was written: make the index again")
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror}): make the index again") from None


def file_record(path: Path) -> FileRecord:
    """Size and digest of a complete file."""
    return FileRecord(size=path.stat().st_size, sha256=sha256_of(path))


def table_of(rows: Iterable[Row]) -> pa.Table:
    """The rows of a part as its table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    return pa.table([pa.array(own, field.type) for own, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)


def write_part(folder: Path, name: str, table: pa.Table, vectors: NDArray[np.float32]) -> PartRecord:
    """Writes the files of a part. table: N rows, from table_of; vectors: (N, D)."""

    def write_table(path: Path) -> None:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
            writer.write_table(table)

    def write_vectors(path: Path) -> None:
        with path.open("wb") as file:
            np.save(file, np.ascontiguousarray(vectors, dtype=np.float32))

    files = {}
    for ending, write in (("arrow", write_table), ("npy", write_vectors)):
        path = folder / f"{name}.{ending}"
        write_aside(path, write, aside_of(path))
        files[ending] = file_record(path)
    return PartRecord(name=name, rows=len(table), files=files)


def write_words(folder: Path, name: str, words: Words) -> WordsRecord:
    """Writes the files of a ranker."""
    remove(folder / name, _is_ranker)
    words.save(folder / name)
    files = {}
    for path in sorted((folder / name).iterdir()):
        sync(path)
        files[path.name] = file_record(path)
    sync(folder / name)
    return WordsRecord(name=name, files=files)


def due(parts: Sequence[PartRecord]) -> range | None:
    """The parts to rewrite as one: one with many removed rows, or the last 16 if they are of similar size.

    Each row is thus written at most log16 N times, and there are at most 15 parts of a size.
    """
    for place, part in enumerate(parts):
        if part.removed and len(part.removed) >= _REMOVED_SHARE * part.rows:
            return range(place, place + 1)
    sizes = [int(math.log(max(part.rows, 1), _FAN)) for part in parts]
    if len(parts) >= _FAN and sizes[-_FAN] == sizes[-1]:
        return range(len(parts) - _FAN, len(parts))
    return None


def write_graphs(folder: Path, parts: Sequence[PartRecord]) -> list[PartRecord]:
    """The parts, with a graph for each large one if the index is large."""
    if (live := sum(part.live for part in parts)) <= graph.MANY_ROWS:
        return list(parts)
    if not graph.has_usearch():
        _logger.warning("%s: %s texts: pip install 'korbert[search]', so that a search is fast", folder, f"{live:,}")
        return list(parts)
    found = []
    for part in parts:
        if part.rows * _FAN >= graph.MANY_ROWS and "usearch" not in part.files:
            path = folder / f"{part.name}.usearch"
            vectors = np.load(folder / f"{part.name}.npy", mmap_mode="r")
            write_aside(path, partial(graph.build_graph, vectors), aside_of(path))
            part = part.model_copy(update={"files": {**part.files, "usearch": file_record(path)}})
        found.append(part)
    return found


def delete_strays(folder: Path, record: Record) -> None:
    """Removes our files that the record does not name: those of interrupted writers and of earlier records.

    Ours are told by their names, and rankers by their files; everything else in the folder stays.
    """
    named = {RECORD, _LOCK, *record.files} | ({record.words.name} if record.words else set())
    named |= {f"{part.name}.{ending}" for part in record.parts for ending in part.files}
    for path in folder.iterdir():
        if path.name in named or path.is_symlink():
            continue
        if _RANKER.fullmatch(path.name) and path.is_dir() and _is_ranker(path):
            remove(path, _is_ranker)
        elif _PART.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


def _is_ranker(folder: Path) -> bool:
    """Whether a folder holds only files of a ranker, whole or unfinished."""
    return all(path.is_file() and _RANKER_FILE.fullmatch(path.name) for path in folder.iterdir())


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the writers' lock. ArtifactError, naming the process, if another one holds it."""
    with (folder / _LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            file.seek(0)
            raise ArtifactError(
                f"{folder}: process {file.read().strip() or 'unknown'} is writing this index: wait until it has ended"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
