"""Vectors for the texts of a file (`korbert embed`), written in parts so that an interrupted run can resume.

A part is `part-NUMBER-<made from>-<content>.parquet` in OUTPUT.partial/. The first digest covers the model, its
settings and the records of the part, so a part is reused whichever run made it. The second digest covers the bytes of
the file and detects damage. Once all parts exist, the output is written in one step.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from korbert.corpus.readers import find_files
from korbert.errors import SettingsError
from korbert.model import Model
from korbert.pipelines.inference.input_records import ID_NAMES, MAX_CHARS, TEXT_NAMES, InputResult, Record, records
from korbert.pipelines.inference.predicting import list_array, string
from korbert.records import LONGEST, File, Format, Source, form_of, holds_records
from korbert.search.texts import fields_to_json, is_encodable
from korbert.system import Advance, claim, content_digest, intact, remove, write_atomically, write_bytes_atomically
from korbert.tasks.files import ROLES, Role, column_for
from korbert.vectors import VectorArgs

_NAMES = {"text": TEXT_NAMES, "query": ("query", *ROLES["question"].names)}
F = TypeVar("F", bound=File)

_TEXT_FILES = (".txt", ".md")
HAS_SURROGATE = "has a lone surrogate, which no file can hold"
PART_ROWS = 4_096  # an interrupted run loses at most one part
_PART = re.compile(  # names in OUTPUT.partial; the axes are of a teacher's cut
    r"part-\d{6,}-[0-9a-f]{32}-[0-9a-f]{16}\.parquet|axes-[0-9a-f]{32}\.npy"
)


@dataclass(frozen=True)
class TextEmbedder:
    """A model and the settings of its vectors, as in Model.embed."""

    model: Model
    asked: VectorArgs

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        return self.model.embed(texts, **self.asked)

    def digest(self) -> "hashlib._Hash":
        """Digest of everything that determines the vectors, except the texts."""
        settings = self.model.vector_settings(**self.asked).model_dump_json()
        return hashlib.sha256(f"{self.model.digest} {settings} {self.model.precision}".encode())


def text_files(folder: Path) -> dict[str, Path]:
    """The visible files of texts and tables below a folder, by their names relative to it; none in a folder that holds
    records."""
    if not folder.is_dir() or holds_records(folder):
        return {}
    return with_usual_endings(visible_files(folder))


def visible_files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their names relative to it, without hidden ones and those of file managers."""
    files = cast(tuple[Path, ...], find_files(str(folder), Path()))
    return {path.relative_to(folder).as_posix(): path for path in files}


def globbed_files(pattern: str) -> dict[str, File]:
    """Returns name -> file for the files that a glob matches; {} if it is no glob. In an address, ? begins a query."""
    if not set(pattern) & set("*[" if "://" in pattern else "*?["):
        return {}
    return {str(path): path for path in find_files(pattern, Path())}


def with_usual_endings(files: Mapping[str, F]) -> dict[str, F]:
    """The files whose names say that they hold texts or a table."""
    return {
        name: path for name, path in files.items() if path.suffix in _TEXT_FILES or form_of(b"", path.name) != "auto"
    }


def holds_texts(folder: Path) -> bool:
    """Whether a folder can be read as a corpus: it holds records or text files."""
    return holds_records(folder) or bool(text_files(folder))


def text_records(
    file: Source, name: str, form: Format = "auto", text: str | None = None, *,
    fields: bool = False, role: Literal["text", "query"] = "text", longest: int | None = None,
) -> Iterator[list[InputResult]]:  # fmt: skip
    """Yields {"line", "id" if any, role} or {"line", "error"} for each record of a file; "cut" marks truncated texts.

    Yields batches; from a pipe, the records that have arrived. text: column or key of the text; None: the first usual
    name that is present. fields: add "fields", the other fields of the record. longest: most bytes of a line and most
    characters of a text; None: the usual limits.
    """
    read_role = text_role(text, role)
    for batch in records(file, name, form, [read_role], every_column=fields, longest=longest or LONGEST):
        yield text_rows(batch, read_role, fields=fields, longest=longest or MAX_CHARS)


def text_role(column: str | None = None, role: Literal["text", "query"] = "text") -> Role:
    """Returns the role to read from a record. column: name of its column; None: the first usual one that is present."""
    return Role(role, (column,) if column else _NAMES[role], string)


def text_rows(
    batch: Sequence[Record], read: Role, *, fields: bool = False, longest: int = MAX_CHARS
) -> list[InputResult]:
    """Returns the rows of records, as text_records yields them."""
    results = [record.result([read], longest=longest) for record in batch]
    if fields:
        for record, result in zip(batch, results, strict=True):
            read_columns = (*ID_NAMES, column_for(read.names, tuple(record.fields)))
            result["fields"] = {key: value for key, value in record.fields.items() if key not in read_columns}
    for index, result in enumerate(results):
        strings = (str(result.get("id", "")), result.get(read.name, ""), fields_to_json(result.get("fields", {})))
        if not all(map(is_encodable, strings)):
            results[index] = {"line": result["line"], "error": HAS_SURROGATE}
    return results


def check_ending(output: Path) -> None:
    """Raises SettingsError if the extension of the output is not a known format."""
    if output.suffix not in _FORMATS:
        raise SettingsError(
            "{output}: the extension chooses the format: use {formats}", output=output, formats=" or ".join(_FORMATS)
        )


class Vectorizer(Protocol):
    """Turns texts into vectors, (N, D). digest: covers everything that determines them, except the texts."""

    def __call__(self, texts: list[str]) -> NDArray[np.float32]: ...
    def digest(self) -> "hashlib._Hash": ...


def claim_parts(output: Path) -> Path:
    """Returns the folder of the parts of an output. Raises ArtifactError if it holds other files."""
    return claim(output.with_name(f"{output.name}.partial"), lambda name: _PART.fullmatch(name) is not None)


def write_vectors(
    embedding: Vectorizer, rows: Iterable[InputResult], output: Path, failed: Callable[[InputResult], bool],
    advance: Advance, *, made_from: str = "",
) -> tuple[int, int]:  # fmt: skip
    """Writes the vectors of records to a file, in order: one row per record, errors included.

    failed: called with each record. made_from: a digest; a .parquet file then has it in its metadata, and the texts.
    Returns the number of rows, and how many of them an earlier run had made.
    """
    partial_folder = claim_parts(output)
    # One text tells the size of the vectors before the schema is needed.
    width = embedding(["."]).shape[1]
    fields = [("line", pa.int64()), ("id", pa.string()), ("error", pa.string())]
    fields += [("text", pa.string())] if made_from else []
    schema = pa.schema([*fields, ("vector", pa.list_(pa.float32(), width))])
    schema = schema.with_metadata({"made_from": made_from}) if made_from else schema
    count = 0
    resumed = 0
    parts: list[Path] = []
    remaining = iter(rows)
    while part_rows := list(islice(remaining, PART_ROWS)):
        digest = embedding.digest()
        digest.update(made_from.encode())
        for row in part_rows:
            failed(row)
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
        name = f"part-{len(parts):06}-{digest.hexdigest()[:32]}"
        path = intact(partial_folder, name)
        if path is None:
            data = _table(embedding, part_rows, schema)
            path = partial_folder / f"{name}-{content_digest(data)}.parquet"
            write_bytes_atomically(path, data)
        else:
            resumed += len(part_rows)
        parts.append(path)
        count += len(part_rows)
        advance(len(part_rows))
    write_atomically(output, partial(_FORMATS[output.suffix], parts, schema, count))
    remove(partial_folder)
    return count, resumed


def _table(embedding: Vectorizer, rows: list[InputResult], schema: pa.Schema) -> memoryview:
    """Computes the vectors of a part, and returns it as the bytes of a Parquet file."""
    has_text = np.array(["text" in row for row in rows])
    vectors = np.zeros((0, schema.field("vector").type.list_size), np.float32)
    if has_text.any():
        vectors = embedding([row["text"] for row in rows if "text" in row])
    columns: dict[str, Any] = {
        "line": [row["line"] for row in rows],
        "id": [str(row["id"]) if "id" in row else None for row in rows],
        "error": [row.get("error") for row in rows],
        "text": [row.get("text") for row in rows],
        "vector": list_array(vectors, has_text),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: columns[name] for name in schema.names}, schema=schema), sink, compression="zstd")
    return memoryview(sink.getvalue())


def _write_parquet(parts: list[Path], schema: pa.Schema, count: int, file: IO[bytes]) -> None:
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for part in parts:
            writer.write_table(pq.read_table(part, schema=schema))


def _write_npy(parts: list[Path], schema: pa.Schema, count: int, file: IO[bytes]) -> None:
    """(N, D) float32; NaN for records with an error."""
    width = schema.field("vector").type.list_size
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (count, width)})
    for part in parts:
        column = pq.read_table(part, schema=schema)["vector"].combine_chunks()
        rows = np.full((len(column), width), np.nan, "<f4")
        has_vector = column.is_valid().to_numpy(zero_copy_only=False)
        rows[has_vector] = column.flatten().to_numpy().reshape(-1, width)  # `flatten` skips nulls
        file.write(rows.data)


_FORMATS: Mapping[str, Callable[[list[Path], pa.Schema, int, IO[bytes]], None]] = {
    ".npy": _write_npy,
    ".parquet": _write_parquet,
}
