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
from korbert.messages import Message, argument
from korbert.pipelines.artifacts.store import MOVE_IT, RECORD, RUN, read_json
from korbert.system import JsonObject

_SAMPLED_PARTS = 8  # read for lengths: enough for their quantiles, in seconds at any corpus size
_BATCH_ROWS = 4096
_MAX_SECONDS = 1e9  # 32 years


@dataclass(frozen=True)
class Artifact:
    """A finished artifact. record: stage.json; run: run.json, empty if there is none.

    A missing key in any of its JSON files raises ArtifactError, naming file and key.
    """

    folder: Path
    record: JsonObject
    run: JsonObject

    @classmethod
    def open(cls, folder: Path) -> "Artifact":
        """Opens the artifact in a folder. Raises ArtifactError if it holds no finished artifact."""
        if not (folder / RECORD).is_file():
            raise ArtifactError(
                "{folder}: no {file} in it, so there is nothing to report: run the stage first",
                folder=folder, file=RECORD,
            )  # fmt: skip
        record = cls(folder, {}, {}).json(RECORD)
        if not isinstance(record.get("stage"), str):
            raise _damage_error(folder / RECORD, Message("names no stage"))
        try:
            run = read_json(folder / RUN) or {}
        except ArtifactError:  # outside the digest: only the run time is lost
            run = {}
        return cls(folder, record, run)

    @property
    def stage(self) -> str:
        return str(self.record["stage"])

    @property
    def seconds(self) -> float | None:
        """Duration of the stage's last run; None if run.json has no plausible number."""
        seconds = self.run.get("seconds")
        return float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < _MAX_SECONDS else None

    def json(self, name: str) -> JsonObject:
        """The object of a JSON file, which must exist."""
        path = self.folder / name
        try:
            return _parse_json(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            raise _damage_error(path, Message("is missing")) from None
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, error) from error

    def lines(self, name: str) -> Iterator[JsonObject]:
        """Streams the objects of a .jsonl file, one per line; none if there is no such file."""
        return json_lines(self.folder / name)

    def parts(self, pattern: str) -> list[Path]:
        """Its files that match the glob pattern, sorted."""
        return sorted(self.folder.glob(pattern))


class _Object(JsonObject):
    """A JSON object whose error for a missing key names its file."""

    def __init__(self, values: JsonObject, file: str) -> None:
        super().__init__(values)
        self._file = file

    def __missing__(self, key: str) -> Any:
        raise _damage_error(self._file, Message("no {key} in it", key=key))


def _parse_json(text: str | bytes, file: str) -> JsonObject:
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogatepass")
        value = json.loads(text, object_hook=lambda values: _Object(values, file))
    except (ValueError, RecursionError) as error:
        raise _unreadable(file, error) from error
    if not isinstance(value, dict):
        raise _damage_error(file, Message("is not an object"))
    return value


def json_lines(path: Path, *, growing: bool = False) -> Iterator[JsonObject]:
    """Streams the objects of a .jsonl file, whose missing keys raise ArtifactError, too; none if there is no such file.

    growing: the file is still being written: leave out a last line without a line break.
    """
    if path.is_file():
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n") or not growing:
                    yield _parse_json(line, f"{path}: line {number}")


@contextlib.contextmanager
def drawing(artifact: Artifact) -> Iterator[None]:
    """Turns errors from values that the stage would not write into an ArtifactError naming the artifact."""
    try:
        yield
    # These are raised for a number that is a string, a list that is too short, and the like.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArtifactError(
            "{folder}: its page cannot be drawn, as a file holds values that the stage does not write: "
            "rebuild this artifact with {option_rebuild}, or find the place with {option_debug}",
            option_rebuild=argument("rebuild"),
            option_debug=argument("debug"),
            folder=artifact.folder,
        ) from error


def num_rows(parts: list[Path]) -> int:
    """Rows of Parquet files, read from their footers."""
    count = 0
    for part in parts:
        with _parquet(part) as file:
            count += file.metadata.num_rows
    return count


def sample_parts(parts: list[Path]) -> tuple[list[Path], str]:
    """At most 8 of the parts, evenly spaced from first to last, and a sentence that says so if there are more."""
    if len(parts) <= _SAMPLED_PARTS:
        return parts, ""
    note = Message("Measured on {sampled} of {parts:,} parts, evenly spaced.", sampled=_SAMPLED_PARTS, parts=len(parts))
    return [parts[index] for index in np.linspace(0, len(parts) - 1, _SAMPLED_PARTS).round().astype(int)], note


def batches(parts: list[Path], columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The columns of Parquet files, a few thousand rows per batch."""
    for part in parts:
        with _parquet(part) as file:
            if missing := sorted(set(columns) - set(file.schema_arrow.names)):
                raise _damage_error(part, Message("no column {names}", names=", ".join(missing)))
            yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)


def stream(parts: list[Path]) -> Iterator[pa.RecordBatch]:
    """The batches of Arrow stream files, memory-mapped: only the columns used are read from disk."""
    for part in parts:
        try:
            with pa.memory_map(str(part)) as source, ipc.open_stream(source) as reader:
                yield from reader
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(part, error) from error


@contextlib.contextmanager
def _parquet(part: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file, open. ArtifactError if it is damaged, also where it is read."""
    try:
        with pq.ParquetFile(part) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(part, error) from error


def _unreadable(path: Path | str, error: Exception) -> ArtifactError:
    return _damage_error(path, Message("cannot be read ({error})", error=str(error).splitlines()[0]))


def _damage_error(file: Path | str, fault: Message) -> ArtifactError:
    remedy = MOVE_IT if Path(file).name == RECORD else Message("rebuild this artifact with --rebuild")
    return ArtifactError("{file}: {fault}: {remedy}", file=file, fault=fault, remedy=remedy)
