"""Predictions and vectors for a corpus: a folder of files in, a folder of Parquet parts out.

1. The files are cut in order, into units of whole records: the same ones, whoever processes them.
2. Worker processes, or actors of a Ray cluster, load the model once. From each unit they write a part to
   OUTPUT.partial/, whose name holds a digest of the model, its settings and the records: later runs find it by that.
3. Parts that lack columns of others get them, and the folder gets its name.
"""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, Self, cast

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from korbert.corpus.documents import group_by_size
from korbert.corpus.execution.workers import Lost, Outcome, Workers, run_units
from korbert.errors import CorpusError, ModelError
from korbert.messages import Message
from korbert.model import Model
from korbert.modeling import digest_of
from korbert.pipelines.inference import embedding, predicting
from korbert.pipelines.inference.input_records import (
    InputResult,
    Record,
    cell_text,
    opened_for,
    records_of_lines,
    records_of_table,
)
from korbert.records import File, Format, Line, Lines, table_of
from korbert.search.texts import fields_to_json, is_encodable
from korbert.system import MARK, claim, remove, track, write_atomically
from korbert.tasks.files import Role
from korbert.vectors import VectorArgs

_VERSION = 2  # raise it when the same records give other parts
_PART_BYTES = 1 << 21  # of text
_PART = re.compile(r"part-\d{6,}-[0-9a-f]{32}\.parquet")
_FAILED = b"korbert.failed"  # in the metadata of a part: number of its rows with an error
_ENDED = "ended its worker process: the text is too long, or there is too little memory"
_RESULTS = frozenset(  # names of columns that results may have
    {"file", "line", "error", "vector", "label", "labels", "probability", "probabilities", "prediction", "choice"}
    | {"answer", "start", "end", "score", "no_answer_score", "spans", "slots", "reasons", "unlike"}
)

_logger = logging.getLogger(__name__)


class RecordProcessor(Protocol):
    """A loaded model with its options. roles: read from a record. digest: covers all that determines its results."""

    @property
    def roles(self) -> Sequence[Role]: ...
    @property
    def digest(self) -> str: ...
    def __call__(self, records: Sequence[Record]) -> list[InputResult]: ...


@dataclass(frozen=True)
class RecordPredictor:
    """Predicts for records, as `korbert predict` does for lines. asked: options, as in `of`."""

    model: Model
    reading: predicting.RecordReader
    asked: Mapping[str, Any]

    @classmethod
    def of(
        cls, model: Model, columns: Mapping[str, Sequence[str]], abstain: float | None, mask_personal: bool,
        **asked: Any,
    ) -> Self:  # fmt: skip
        """asked: why, as in Model.predict; top and threshold, as in predicting.select_labels."""
        if abstain is not None:
            model = model.abstaining(abstain)
        asked["threshold"] = predicting.threshold_of(model, asked["threshold"])
        return cls(model, predicting.RecordReader.of(model, columns, mask_personal=mask_personal), asked)

    @property
    def roles(self) -> Sequence[Role]:
        return self.reading.wanted

    @property
    def digest(self) -> str:
        names = {role.name: role.names for role in self.roles}
        facts = [
            self.model.digest,
            self.model.precision,
            self.model.task.task(),
            names,
            dict(self.asked),
            self.reading.mask_personal,
        ]
        network = self.model.network
        weights = chain(network.named_parameters(), network.named_buffers())
        head = {name: tensor for name, tensor in weights if not name.startswith("encoder.")}  # in the model's digest
        return digest_of(json.dumps(facts, sort_keys=True).encode(), head)

    def __call__(self, records: Sequence[Record]) -> list[InputResult]:
        rows = self.reading.rows(records)
        predicting.add_predictions(self.model, rows, why=self.asked["why"])
        return [predicting.select_labels(row, self.asked["top"], self.asked["threshold"]) for row in rows]


@dataclass(frozen=True)
class RecordEmbedder:
    """Vectors of the texts of records, as `korbert embed` has them. role: the role to read from a record."""

    embedder: embedding.TextEmbedder
    role: Role

    @classmethod
    def of(cls, model: Model, column: str | None, asked: VectorArgs) -> Self:
        """column: of the text; None: the first usual one. asked: as in Model.embed."""
        return cls(embedding.TextEmbedder(model, asked), embedding.text_role(column))

    @property
    def roles(self) -> Sequence[Role]:
        return [self.role]

    @property
    def digest(self) -> str:
        digest = self.embedder.digest()
        digest.update(json.dumps(self.role.names).encode())
        return digest.hexdigest()

    def __call__(self, records: Sequence[Record]) -> list[InputResult]:
        rows = embedding.text_rows(records, self.role)
        good = [row for row in rows if "text" in row]
        vectors = self.embedder([row["text"] for row in good])
        for row, vector in zip(good, vectors, strict=True):
            row["vector"] = vector
        return rows


@dataclass(frozen=True)
class RecordSlice:
    """Some records of a file, in order.

    rows: lines; or records that have been read; or a table of Parquet or Arrow, with all columns and types. before: the
    number of records of that table before these. part: file to write; None: the result is returned.
    """

    file: str
    rows: Sequence[Line] | Sequence[Record] | pa.Table
    before: int = 0
    form: Format = "auto"
    encoding: str = ""
    part: Path | None = None

    def records(self, roles: Sequence[Role]) -> list[Record]:
        """Returns the records with all their fields; from an Arrow table, only with the fields that the roles need."""
        if isinstance(self.rows, pa.Table):
            return list(records_of_table(table_of(self.rows), self.file, roles, before=self.before))
        if self.form == "auto":
            return list(cast(Sequence[Record], self.rows))
        lines = Lines(iter(()), self.form, self.encoding)
        return records_of_lines(lines, cast(Sequence[Line], self.rows), roles)

    def halves(self) -> "tuple[RecordSlice, RecordSlice] | None":
        """Splits the unit into two without a part to write; None for a single record."""
        if len(self.rows) < 2:
            return None
        middle = len(self.rows) // 2
        first = replace(self, rows=self.rows[:middle], part=None)
        return first, replace(self, rows=self.rows[middle:], part=None, before=self.before + middle)

    def digest(self, processor: str) -> str:
        """Returns a digest of the records, their place and their processor. processor: its digest."""
        source = f"{self.before} {self.form} {self.encoding}"
        digest = hashlib.sha256(f"{_VERSION} {pa.__version__} {processor} {source}\n{self.file}\n".encode())
        if isinstance(self.rows, pa.Table):
            digest.update(memoryview(_stream_of(self.rows)))
        else:
            for row in self.rows:
                if isinstance(row, Line):
                    digest.update(f"\n{row.number} {row.size} ".encode() + row.data)
                else:
                    digest.update(repr(row).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:32]


def units_of(files: Mapping[str, File], form: Format, roles: Sequence[Role]) -> Iterator[RecordSlice]:
    """Yields the records of the files in order. Raises CorpusError and SettingsError as records() does."""
    for name, path in files.items():
        with opened_for(roles, path, name, form) as opened:
            if isinstance(opened, Lines):
                lines = chain.from_iterable(opened.batches)
                for unit_lines in group_by_size(lines, _PART_BYTES, lambda line: len(line.data) + 1):
                    yield RecordSlice(name, unit_lines, form=opened.form, encoding=opened.encoding)
            elif opened.batches:
                before = 0
                batches = chain.from_iterable(map(_sliced, opened.batches(opened.columns)))
                for unit_batches in group_by_size(batches, _PART_BYTES, lambda batch: batch.nbytes):
                    # Copied by a stream: a mere slice would take its whole batch along to the worker.
                    table = pa.ipc.open_stream(_stream_of(pa.Table.from_batches(unit_batches))).read_all()
                    yield RecordSlice(name, table, before)
                    before += len(table)
            else:
                records = records_of_table(opened, name, roles, every_column=True)
                for group in group_by_size(records, _PART_BYTES, lambda record: len(repr(record.fields))):
                    yield RecordSlice(name, group)


def _stream_of(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a batch in slices of about _PART_BYTES: a batch of books may have a hundred times as many."""
    rows = max(1, batch.num_rows * _PART_BYTES // max(1, batch.nbytes))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def write_parts(
    processor: RecordProcessor, load: Callable[[], RecordProcessor], files: Mapping[str, File], output: Path, *,
    form: Format, workers: Workers,
) -> Counter[str]:  # fmt: skip
    """Writes `output`/part-NUMBER-DIGEST.parquet, in the order of the records; returns the counts.

    A row has the columns of its record (as texts, unless the file is Parquet or Arrow), then `file`, `line` and the
    results: a `vector`, or the columns of `korbert predict --csv`; a record that cannot be read has its `error`. A
    column of the records with such a name gets `input_` before it, even if it has that already. load: makes the same
    processor in each worker. The counts are `rows`, `failed`, and `resumed`: rows of an earlier run. CorpusError for
    files without a record.
    """
    roles = list(processor.roles)
    digest = processor.digest
    folder = claim(output.with_name(f"{output.name}.partial"), lambda name: _PART.fullmatch(name) is not None)
    finished = {path.stem.rpartition("-")[2]: path for path in folder.glob("part-*.parquet")}
    names: list[str] = []
    counts: Counter[str] = Counter()
    with track(output.name, None, "rows") as advance:

        def count(part: Path) -> int:
            metadata = pq.read_metadata(part)
            rows: int = metadata.num_rows
            counts.update(rows=rows, failed=int(metadata.metadata[_FAILED]))
            advance(rows)
            return rows

        def pending() -> Iterator[RecordSlice]:
            for number, unit in enumerate(units_of(files, form, roles)):
                key = unit.digest(digest)
                part = folder / f"part-{number:06}-{key}.parquet"
                names.append(part.name)
                if key in finished:
                    finished[key].rename(part)
                    counts["resumed"] += count(part)
                else:
                    yield replace(unit, part=part)

        try:
            for outcome in run_units(
                _process,
                pending(),
                workers=workers,
                split=RecordSlice.halves,
                initializer=partial(_start, load, digest),
            ):
                part = outcome.unit.part
                assert part is not None
                if outcome.halved:
                    _write(part, _joined(outcome, roles))
                count(part)
        except BaseException:
            if not any(folder.glob("part-*")):
                remove(folder)
            raise
    if not counts["rows"]:
        remove(folder)
        raise CorpusError("{output}: the files hold no record: give others", output=output)
    _finish(folder, names, output)
    return counts


def _finish(folder: Path, names: Sequence[str], output: Path) -> None:
    """Turns the folder of finished parts into the output. names: of the parts; all other files are removed."""
    wanted = {MARK, *names}
    for path in folder.iterdir():  # parts of other files or settings, and what a killed process was writing
        if path.name not in wanted:
            path.unlink()
    _complete_columns([folder / name for name in names])
    if output.exists():  # an empty folder
        output.rmdir()
    folder.rename(output)
    (output / MARK).unlink()


_processor: RecordProcessor | None = None  # one in each worker process


def _start(load: Callable[[], RecordProcessor], digest: str) -> None:
    """Loads the model in a worker. It has one thread: the workers are the parallelism, and the number of threads would
    change sums.

    Raises ModelError if the processor does not have this digest, as on a machine with another copy of the model.
    """
    global _processor
    torch.set_num_threads(1)
    _processor = load()
    if _processor.digest != digest:
        raise ModelError("a worker has another model under this name: put the same one on all machines")


def _process(unit: RecordSlice) -> pa.Table | None:
    """Writes the part of a unit; without one, returns its rows."""
    assert _processor is not None
    records = unit.records(_processor.roles)
    if not isinstance(unit.rows, pa.Table):  # Arrow holds no lone surrogates
        records = [_without_surrogates(record) for record in records]
    table = _table_of(unit, records, _processor(records), _processor.roles)
    if unit.part is None:
        return table
    _write(unit.part, table)
    return None


def _without_surrogates(record: Record) -> Record:
    """The record, or one with an error if a field has a lone surrogate."""
    is_valid = is_encodable(fields_to_json(record.fields))
    return record if is_valid else Record(record.line, error=embedding.HAS_SURROGATE)


def _table_of(
    unit: RecordSlice, records: Sequence[Record], results: Sequence[InputResult], roles: Sequence[Role]
) -> pa.Table:
    """The columns of the records, their places and their results."""
    if isinstance(unit.rows, pa.Table):
        table = unit.rows
    else:
        names = dict.fromkeys(chain.from_iterable(record.fields for record in records))
        table = pa.table(
            {name: pa.array([cell_text(record.fields.get(name)) for record in records], pa.string()) for name in names}
        )
    # A column is renamed alike in all parts, whatever others a part has: `input_label`, too, as `label` takes its name.
    table = table.rename_columns(
        [f"input_{name}" if name.replace("input_", "") in _RESULTS else name for name in table.column_names]
    )
    places = [{"file": unit.file, "line": record.line} for record in records]
    rows = [place | result for place, result in zip(places, results, strict=True)]
    table = predicting.with_predictions(table, rows, {"id", *(role.name for role in roles)})
    failed = sum("error" in result for result in results)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _FAILED: str(failed)})


def _joined(outcome: Outcome[RecordSlice, pa.Table | None], roles: Sequence[Role]) -> pa.Table:
    """Joins the rows of a unit that was halved. A record that ended its worker process gets the error _ENDED."""
    tables: list[pa.Table] = []
    for piece in outcome.pieces:
        if isinstance(piece, Lost):
            (record,) = piece.unit.records(roles)
            tables.append(_table_of(piece.unit, [record], [{"line": record.line, "error": _ENDED}], roles))
        else:
            tables.append(piece)
    failed = sum(int(table.schema.metadata[_FAILED]) for table in tables)
    whole = pa.concat_tables(tables, promote_options="default")
    return whole.replace_schema_metadata({**whole.schema.metadata, _FAILED: str(failed)})


def _write(part: Path, table: pa.Table) -> None:
    write_atomically(part, lambda file: pq.write_table(table, file, compression="zstd"))


def _complete_columns(parts: Sequence[Path]) -> None:
    """Rewrites the parts that lack columns of other parts, because readers take the columns from the first file.

    Parts whose columns are of different types, as those of different tables of Parquet, stay as they are; only strings
    become large strings, if some are.
    """
    schemas = {part: pq.read_schema(part) for part in parts}
    fields = list(chain.from_iterable(schemas.values()))
    large = {field.name for field in fields if pa.types.is_large_string(field.type)}
    try:
        whole = pa.unify_schemas([_with_large(schema, large) for schema in schemas.values()])
    except pa.ArrowException as error:
        _logger.warning(Message("parts have columns of different types, and stay so: {error}", error=error))
        return
    for part, schema in schemas.items():
        if schema != whole:
            table = pq.read_table(part)
            columns = [
                table[field.name].cast(field.type) if field.name in schema.names else pa.nulls(len(table), field.type)
                for field in whole
            ]
            _write(part, pa.table(columns, schema=whole.with_metadata(schema.metadata)))


def _with_large(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Returns the schema with large strings instead of strings in the columns of these names."""
    return pa.schema(
        [
            field.with_type(pa.large_string()) if field.name in names and pa.types.is_string(field.type) else field
            for field in schema
        ]
    )
