"""Finished parts: files that are whole or absent, each with a record by which a later run knows that it is done.

An output folder holds the data (`documents/part-00000.parquet`) and `work/`: the records (`work/STEP/part-00000.json`),
how many there will be (`work/STEP/parts`), and what is being written.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

__all__ = [
    "ROW_GROUP_ROWS",
    "Counts",
    "Part",
    "keep_only",
    "key_of",
    "part_files",
    "unfinished",
    "write_parquet",
    "write_tables",
    "written_aside",
]

Counts = dict[str, int]

ROW_GROUP_ROWS = 1 << 10  # of texts: `analyze` reads a slice of a part at a time

_COMPRESSION = "zstd"
_LEVEL = 3
_COUNTERS = pa.list_(pa.int32())  # numbers that grow through a list: their differences take half the room


@dataclass(frozen=True)
class Part:
    """One work unit's place in an output folder.

    step names the work, name the part; key tells what it was made from, so that other input is not taken for done.
    """

    output: Path
    step: str
    name: str
    key: str

    @property
    def work(self) -> Path:
        return self.output / "work" / self.step

    @property
    def record(self) -> Path:
        return self.work / f"{self.name}.json"

    def finished(self) -> Counts | None:
        """The counts of the part if it is done: same key, files there with the bytes of the record. Else None."""
        try:
            record = json.loads(self.record.read_text("utf-8"))
            if record["key"] != self.key:
                return None
            if any(_sha256(self.output / name) != digest for name, digest in record["files"].items()):
                return None
            return dict(record["counts"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def finish(self, files: Iterable[Path], counts: Mapping[str, int]) -> Counts:
        """Writes the record, after all files of the part are in place."""
        digests = {path.relative_to(self.output).as_posix(): _sha256(path) for path in files}
        record = {"key": self.key, "files": digests, "counts": dict(counts)}
        text = json.dumps(record, ensure_ascii=False, indent=1)
        written_aside(self.record, lambda path: path.write_text(text, "utf-8"), self.output)
        return dict(counts)


class _HasPart(Protocol):
    @property
    def part(self) -> Part: ...


U = TypeVar("U", bound=_HasPart)


def unfinished(units: Sequence[U]) -> tuple[list[U], Counter[str]]:
    """The units still to do, and the sums of what those done before had counted."""
    pending: list[U] = []
    totals: Counter[str] = Counter()
    for unit in units:
        done = unit.part.finished()
        if done is None:
            pending.append(unit)
        else:
            totals.update(done)
    for work in {unit.part.work for unit in units}:
        work.mkdir(parents=True, exist_ok=True)
        (work / "parts").write_text(f"{len(units)}\n", "utf-8")
    return pending, totals


def written_aside(path: Path, write: Callable[[Path], object], output: Path) -> Path:
    """Calls `write` on a path in the scratch folder of `output`, syncs what it wrote, and renames it to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = output / "work" / "writing"
    scratch.mkdir(parents=True, exist_ok=True)
    aside = scratch / f"{os.getpid()}-{path.parent.name}-{path.name}"
    try:
        write(aside)
        _sync(aside)
        aside.replace(path)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:  # Arrow tells what, but not where
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise
    _sync(path.parent)
    return path


def write_parquet(path: Path, table: pa.Table, output: Path, rows: int = 1 << 20, *, scratch: bool = False) -> Path:
    """One table as one file, its bytes settled by the table alone.

    rows: the most in a row group. scratch: packed in less time and not so small, as it is read once.
    """

    def write(aside: Path) -> None:
        if scratch:
            pq.write_table(table, aside, compression="lz4", use_dictionary=False, row_group_size=rows)
        else:
            pq.write_table(
                table,
                aside,
                compression=_COMPRESSION,
                compression_level=_LEVEL,
                row_group_size=rows,
                **_encodings(table.schema),
            )

    return written_aside(path, write, output)


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """What pq.write_table is told of the columns: those of growing numbers as differences, all others as it likes."""
    leaves = {
        f"{one.name}.list.element" if pa.types.is_list(one.type) else one.name: one.type == _COUNTERS for one in schema
    }
    growing = [name for name, grows in leaves.items() if grows]
    if not growing:
        return {}
    others = [name for name, grows in leaves.items() if not grows]
    return {"use_dictionary": others, "column_encoding": dict.fromkeys(growing, "DELTA_BINARY_PACKED")}


def write_tables(path: Path, schema: pa.Schema, tables: Iterable[pa.Table], output: Path) -> int:
    """Tables as one file, each a row group, never all in memory; returns the number of rows."""
    rows = 0

    def write(aside: Path) -> None:
        nonlocal rows
        with pq.ParquetWriter(aside, schema, compression=_COMPRESSION, compression_level=_LEVEL) as writer:
            for table in tables:
                writer.write_table(table.cast(schema))
                rows += table.num_rows

    written_aside(path, write, output)
    return rows


def part_files(folder: Path, suffix: str = ".parquet") -> list[Path]:
    """The parts in a folder, in order."""
    return sorted(folder.glob(f"part-*{suffix}"))


def keep_only(folder: Path, names: Iterable[str]) -> None:
    """Removes files in the folder that this run did not make or find done."""
    wanted = set(names)
    for path in folder.glob("part-*"):
        if path.name not in wanted:
            path.unlink()


def key_of(settings: BaseModel | None, *made_from: str | int | bytes) -> str:
    """A short digest of all that settles a part's bytes."""
    digest = blake2b(digest_size=16)
    for item in ("" if settings is None else settings.model_dump_json(), *made_from):
        data = item if isinstance(item, bytes) else str(item).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
