"""Reads an artifact for its page: the record, and the data files batch by batch, never a whole corpus."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from korbert.errors import ArtifactError
from pipelines.artifacts.store import RECORD, RUN, Json, read_json
from pipelines.reports import formatting

_SAMPLED_PARTS = 8  # read for a histogram: enough for its shape, in seconds at any corpus size

_BATCH_ROWS = 4096
_MAX_SECONDS = 1e9  # 32 years


@dataclass(frozen=True)
class Artifact:
    """A finished artifact. record: stage.json; run: run.json, empty if there is none.

    A missing key in any of its JSON files raises ArtifactError, naming file and key.
    """

    folder: Path
    record: Json
    run: Json

    @classmethod
    def open(cls, folder: Path) -> "Artifact":
        """Raises ArtifactError if the folder holds no finished artifact."""
        record = read_json(folder / RECORD)
        if record is None:
            raise ArtifactError(f"{folder}: no {RECORD} in it, so there is nothing to report: run the stage first")
        if not isinstance(record.get("stage"), str):
            raise _damaged(folder / RECORD, "names no stage")
        try:
            run = read_json(folder / RUN) or {}
        except ArtifactError:  # outside the digest: only the run time is lost
            run = {}
        return cls(folder, _Object(record, folder / RECORD), run)

    @property
    def stage(self) -> str:
        return str(self.record["stage"])

    @property
    def seconds(self) -> float | None:
        """Duration of the stage's last run; None if run.json has no plausible number."""
        seconds = self.run.get("seconds")
        return float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < _MAX_SECONDS else None

    def json(self, name: str) -> Json:
        """The object of a JSON file, which must exist."""
        value = read_json(self.folder / name)
        if value is None:
            raise _damaged(self.folder / name, "is missing")
        return _Object(value, self.folder / name)

    def text(self, name: str) -> str:
        """The content of a text file, which must exist."""
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise _damaged(self.folder / name, "is missing") from None
        except UnicodeDecodeError as error:
            raise _unreadable(self.folder / name, error) from error

    def lines(self, name: str) -> list[Json]:
        """The objects of a .jsonl file, one per line; empty if there is no such file."""
        path = self.folder / name
        return [_named(value, path, f"[{number}]") for number, value in enumerate(self.each_line(name))]

    def each_line(self, name: str) -> Iterator[Json]:
        """Streams the objects of a large .jsonl file; empty if there is no such file."""
        path = self.folder / name
        if not path.is_file():
            return
        with path.open(encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise _unreadable(path, ValueError(f"line {number}: {error}")) from error

    def parts(self, pattern: str) -> list[Path]:
        """Its files that match the glob pattern, sorted."""
        return sorted(self.folder.glob(pattern))


class _Object(Json):
    """A JSON object whose error for a missing key names its file, and its position in it, as all objects in it do."""

    def __init__(self, values: Json, file: Path, position: str = "") -> None:
        super().__init__({key: _named(item, file, f"{position}.{key}".lstrip(".")) for key, item in values.items()})
        self._file, self._position = file, position

    def __missing__(self, key: str) -> Any:
        raise _damaged(self._file, f"no {f'{self._position}.{key}'.lstrip('.')} in it")


def _named(value: Any, file: Path, position: str) -> Any:
    """The value with all objects in it as `_Object`."""
    if isinstance(value, dict):
        return _Object(value, file, position)
    if isinstance(value, list):
        return [_named(item, file, f"{position}[{number}]") for number, item in enumerate(value)]
    return value


@contextlib.contextmanager
def drawing(artifact: Artifact) -> Iterator[None]:
    """Turns errors from values that the stage would not write into an ArtifactError naming the artifact."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{artifact.folder}: its page cannot be drawn, as a file holds values that the stage does not write: "
            "rebuild this artifact with --rebuild, or find the place with --debug"
        ) from error


def num_rows(parts: list[Path]) -> int:
    """Rows of Parquet files, read from their footers."""
    return sum(_parquet(part).metadata.num_rows for part in parts)


def sampled(parts: list[Path]) -> tuple[list[Path], str]:
    """At most 8 of the parts, evenly spaced from first to last, and a sentence that says so if there are more."""
    if len(parts) <= _SAMPLED_PARTS:
        return parts, ""
    indices = np.linspace(0, len(parts) - 1, _SAMPLED_PARTS).round().astype(int)
    note = f"Measured on {_SAMPLED_PARTS} of {formatting.count(len(parts))} parts, evenly spaced. "
    return [parts[index] for index in indices], note


def batches(parts: list[Path], columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The columns of Parquet files, a few thousand rows per batch."""
    for part in parts:
        file = _parquet(part)
        if missing := sorted(set(columns) - set(file.schema_arrow.names)):
            raise _damaged(part, f"no column {', '.join(missing)}")
        yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)


def stream(parts: list[Path]) -> Iterator[pa.RecordBatch]:
    """The batches of Arrow stream files, memory-mapped: only the columns used are read from disk."""
    for part in parts:
        try:
            with pa.memory_map(str(part)) as source, ipc.open_stream(source) as reader:
                yield from reader
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(part, error) from error


def _parquet(part: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(part)
    except pa.ArrowInvalid as error:
        raise _unreadable(part, error) from error


def _unreadable(path: Path, error: Exception) -> ArtifactError:
    return _damaged(path, f"cannot be read ({str(error).splitlines()[0]})")


def _damaged(path: Path, what: str) -> ArtifactError:
    return ArtifactError(f"{path}: {what}: rebuild this artifact with --rebuild")
