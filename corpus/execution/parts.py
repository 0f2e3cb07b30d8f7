"""Finished parts: files that are whole or absent, each with a record by which later runs recognize it.

An output folder holds the data (`documents/part-00000.parquet`) and `work/`: the records (`work/STEP/part-00000.json`),
the number of parts (`work/STEP/parts`), and files that are being written.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel

from korbert.errors import ArtifactError, CorpusError
from korbert.messages import Message
from korbert.system import installed_version, read_object, sha256_of, sync, write_atomically, write_bytes_atomically

ROW_GROUP_ROWS = 1 << 10  # of texts: `analyze` reads only the row groups of its slice

_REPAIR = Message(
    "`korbert status RECIPE --verify` says what of its artifact is; make that stage anew with "
    "`korbert run RECIPE --from STAGE --rebuild`"
)

_COMPRESSION = "zstd"
_LEVEL = 3
_HUGE_TEXT = 1 << 24  # bytes
_COUNTERS = pa.list_(pa.int32())  # numbers that grow along a list: their differences take half the space


@dataclass(frozen=True)
class OutputPart:
    """The part of a work unit in an output folder.

    step: name of the work. name: of the part. key: digest of all inputs; a part with another key is made again.
    """

    output: Path
    step: str
    name: str
    key: str

    def scratch(self, kind: str | None = None, suffix: str = ".parquet") -> Path:
        """Returns the path of a file of the part in the scratch folder of its step, or in that of another `kind`."""
        return self.output / "work" / (kind or self.step) / f"{self.name}{suffix}"

    @property
    def record(self) -> Path:
        return self.scratch(suffix=".json")

    def finished(self) -> dict[str, int] | None:
        """The counts of the part if it is finished, with the same key and the files of its record; else None."""
        try:
            record = read_object(self.record)
            is_same = record["key"] == self.key and all(
                sha256_of(self.output / name) == digest for name, digest in record["files"].items()
            )
            return dict(record["counts"]) if is_same else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def finish(self, files: Iterable[Path], counts: Mapping[str, int]) -> dict[str, int]:
        """Writes the record, once all files of the part are in place."""
        digests = {path.relative_to(self.output).as_posix(): sha256_of(path) for path in files}
        record = {"key": self.key, "files": digests, "counts": dict(counts)}
        text = json.dumps(record, ensure_ascii=False, indent=1)
        written_aside(self.record, lambda file: file.write(text.encode()), self.output)
        return dict(counts)


def unfinished(parts: Collection[OutputPart]) -> tuple[list[OutputPart], Counter[str]]:
    """Returns the parts that are not finished, and the summed counts of the finished ones.

    Also writes the number of parts into the folder of their records.
    """
    pending: list[OutputPart] = []
    totals: Counter[str] = Counter()
    for part in parts:
        if (counts := part.finished()) is None:
            pending.append(part)
        else:
            totals.update(counts)
    for work in {part.record.parent for part in parts}:
        work.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(work / "parts", f"{len(parts)}\n".encode())
    return pending, totals


def written_aside(path: Path, write: Callable[[IO[bytes]], object], output: Path) -> Path:
    """Calls `write` with a new file in the scratch folder of `output`, syncs it, and renames it to `path`."""
    scratch = output / "work" / "writing"
    scratch.mkdir(parents=True, exist_ok=True)
    write_atomically(path, write, scratch=scratch)
    sync(path.parent)
    return path


def write_parquet(path: Path, table: pa.Table, output: Path, rows: int = 1 << 20, *, scratch: bool = False) -> Path:
    """Writes a table as one file, whose bytes depend on the table alone. Returns its path.

    rows: maximum rows of a row group. scratch: compresses faster and less, for a file that is read once.
    """
    options: dict[str, Any] = {"compression": "lz4", "use_dictionary": False, "write_statistics": False}
    if not scratch:
        options = {"compression": _COMPRESSION, "compression_level": _LEVEL}
        # No statistics of huge texts: Arrow would make copies of eight times their size.
        huge = {
            field.name
            for field in table.schema
            if pa.types.is_large_string(field.type)
            and (pc.max(pc.binary_length(table[field.name])).as_py() or 0) > _HUGE_TEXT
        }
        if huge:
            options["write_statistics"] = [name for name in table.column_names if name not in huge]
        # Columns of growing numbers are stored as differences.
        growing = {field.name: f"{field.name}.list.element" for field in table.schema if field.type == _COUNTERS}
        if growing:
            leaves = [
                f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
                for field in table.schema
                if field.name not in growing
            ]
            encodings = dict.fromkeys(growing.values(), "DELTA_BINARY_PACKED")
            options |= {"use_dictionary": leaves, "column_encoding": encodings}
    return written_aside(path, lambda file: pq.write_table(table, file, row_group_size=rows, **options), output)


def write_tables(path: Path, schema: pa.Schema, tables: Iterable[pa.Table], output: Path) -> int:
    """Writes tables as one file, with a row group for each, one in memory at a time. Returns the number of rows."""
    rows = 0

    def write(file: IO[bytes]) -> None:
        nonlocal rows
        with pq.ParquetWriter(file, schema, compression=_COMPRESSION, compression_level=_LEVEL) as writer:
            for table in tables:
                writer.write_table(table.cast(schema))
                rows += table.num_rows

    written_aside(path, write, output)
    return rows


def read_table(path: Path, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
    """Reads a Parquet file that a stage wrote. options: of pq.read_table. ArtifactError if the file is damaged."""
    with named_in_errors(path):
        return pq.read_table(path, columns=columns, **options)


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Turns errors of Arrow and NumPy about this file into an ArtifactError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise ArtifactError("{path}: is gone: {repair}", path=path, repair=_REPAIR) from None
    except (pa.ArrowException, OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        if isinstance(error, OSError) and error.errno:  # the disk, not the file
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> ArtifactError:
    """The error to raise for a damaged file."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return ArtifactError("{path}: is damaged ({lines}): {repair}", path=path, lines=lines[0], repair=_REPAIR)


def part_files(folder: Path, *, made_by: str = "") -> list[Path]:
    """The parts in a folder, in order of their numbers. Without any, CorpusError names the stage that makes them."""
    paths = sorted(folder.glob("part-*.parquet"), key=lambda path: (len(path.name), path.name))
    if made_by and not paths:
        raise CorpusError(
            "{folder}: no part-*.parquet in there: run `korbert {made_by}` first", folder=folder, made_by=made_by
        )
    return paths


def keep_only(folder: Path, names: Iterable[str]) -> None:
    """Removes the parts in the folder that are not among `names`: a run with other inputs left them."""
    wanted = set(names)
    for path in folder.glob("part-*"):
        if path.name not in wanted:
            path.unlink()


def key_of(settings: BaseModel | None, *made_from: str | int | bytes, libraries: Sequence[str] = ()) -> str:
    """A digest of everything that determines the bytes of a part. A file belongs in it by `sha256_of`, not by name.

    libraries: packages that shape the bytes; their installed versions are included.
    """
    versions = [f"{name} {installed_version(name)}" for name in libraries]
    digest = blake2b(digest_size=16)
    for item in ("" if settings is None else settings.model_dump_json(), *made_from, *versions):
        data = item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
