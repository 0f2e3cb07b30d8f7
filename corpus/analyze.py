"""Documents -> sentences and morphemes, by Kiwi, once in the whole project.

A part is a slice of about `part_bytes` of one file of documents. One that crashes or hangs Kiwi is halved, down to the
one document that does it; that document goes to `failed/`, and the part is what is left, byte for byte the same
however it was halved.
"""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.execution.parts import (
    Counts,
    Part,
    keep_only,
    key_of,
    named_in_errors,
    part_files,
    read_table,
    unfinished,
    write_parquet,
)
from corpus.execution.workers import Lost, Outcome, Workers, run_units
from corpus.morphemes import SCHEMA, Ints
from corpus.settings import AnalyzeSettings
from korbert.durable import sha256_of
from korbert.errors import CorpusError
from korbert.progress import track
from korbert.tokenization.analyzer import Analyzer, changes
from korbert.tokenization.settings import AnalyzerOptions

__all__ = ["analyze"]

_VERSION = 1  # raise it when the same input gives other bytes
_LIBRARIES = ("kiwipiepy", "kiwipiepy_model", "numpy", "pyarrow")
_MIN_DEADLINE_SHARE = 1 / 32  # of a part's deadline, for the smallest slice

_FAILED = pa.schema([("id", pa.string()), ("source", pa.string()), ("reason", pa.string()), ("detail", pa.string())])

_ELEMENTS = [field.type.value_type for field in SCHEMA if pa.types.is_list(field.type)]

_analyzer: Analyzer | None = None  # one in each worker process


@dataclass(frozen=True)
class _Slice:
    """Work unit: rows `first` to `stop` of a file of documents. whole: not halved, so it writes the part itself."""

    part: Part
    documents: Path
    first: int
    stop: int
    text_bytes: int
    whole: bool = True


@dataclass(frozen=True)
class _Done:
    """What a worker made of a slice: counts where it wrote the part, the path of a piece where it was halved."""

    counts: Counts
    piece: Path


def analyze(settings: AnalyzeSettings, documents: Path, output: Path, *, workers: int | Workers) -> Counts:
    """Writes `output`/morphemes/part-*.parquet, with the columns of corpus.morphemes.SCHEMA, and where Kiwi failed
    failed/part-*.parquet: id, source, reason (kiwi_crashed, kiwi_timeout), detail.

    documents: the folder of parts that `clean` wrote. Returns the numbers of documents, failed ones, sentences,
    eojeols and morphemes.
    """
    units = list(_slices(settings, documents, output))
    pending, totals = unfinished(units)
    with track("analyze", total=sum(unit.stop - unit.first for unit in units), unit="documents") as advance:
        advance(totals["documents"] + totals["failed"])
        for outcome in run_units(
            _analyze,
            pending,
            workers=workers,
            deadline=lambda unit: _deadline(unit, settings),
            split=_halves,
            initializer=_load_analyzer,
            initargs=(settings.options,),
        ):
            totals.update(_joined(outcome) if outcome.halved else outcome.results[0].counts)
            advance(outcome.unit.stop - outcome.unit.first)
    for folder in ("morphemes", "failed"):
        keep_only(output / folder, [f"{unit.part.name}.parquet" for unit in units])
    return {name: totals[name] for name in ("documents", "failed", "sentences", "eojeols", "morphemes")}


def _slices(settings: AnalyzeSettings, documents: Path, output: Path) -> Iterator[_Slice]:
    """The work units. Only the lengths of texts are looked at, one file of documents at a time."""
    paths = part_files(documents)
    if not paths:
        raise CorpusError(f"{documents}: no part-*.parquet in there: run `korbert clean` first")
    number = 0
    for path in paths:
        texts = read_table(path, ["text"])["text"]
        content = sha256_of(path)
        for first, stop, text_bytes in _cuts(pc.binary_length(texts).to_pylist(), settings.part_bytes):
            key = key_of(settings, _VERSION, content, first, stop, libraries=_LIBRARIES)
            yield _Slice(Part(output, "analyze", f"part-{number:05d}", key), path, first, stop, text_bytes)
            number += 1


def _cuts(lengths: Sequence[int], part_bytes: int) -> Iterator[tuple[int, int, int]]:
    """(first, stop, bytes) of slices that end as soon as they hold `part_bytes`."""
    first = size = 0
    for stop, length in enumerate(lengths, 1):
        size += length
        if size >= part_bytes:
            yield first, stop, size
            first, size = stop, 0
    if first < len(lengths):
        yield first, len(lengths), size


def _deadline(unit: _Slice, settings: AnalyzeSettings) -> float:
    return settings.deadline_seconds * max(_MIN_DEADLINE_SHARE, unit.text_bytes / settings.part_bytes)


def _halves(unit: _Slice) -> tuple[_Slice, _Slice] | None:
    """Two slices that write pieces for `_joined`; None for a single document."""
    if unit.stop - unit.first < 2:
        return None
    middle = (unit.first + unit.stop) // 2
    size = unit.text_bytes // 2
    return (
        replace(unit, stop=middle, text_bytes=size, whole=False),
        replace(unit, first=middle, text_bytes=size, whole=False),
    )


def _load_analyzer(options: AnalyzerOptions) -> None:
    """Kiwi is loaded before the first unit, so that no deadline counts it.

    Millions of small objects would set off the search for cycles over and over: it rests, and runs once a unit.
    """
    global _analyzer
    _analyzer = Analyzer(options)
    _analyzer.analyze("한국어")
    gc.freeze()
    gc.disable()


def _analyze(unit: _Slice) -> _Done:
    """A slice to its part, or to a piece of it where it was halved."""
    gc.collect()
    documents = _read_slice(unit)
    table = _morphemes(documents["id"], documents["source"], documents["text"].to_pylist())
    piece = unit.part.work / f"{unit.part.name}.{unit.first}-{unit.stop}.parquet"
    if unit.whole:
        return _Done(_finish(unit, table, _FAILED.empty_table()), piece)
    return _Done({}, write_parquet(piece, table, unit.part.output, scratch=True))


def _read_slice(unit: _Slice) -> pa.Table:
    """The documents of a slice; of the file only the row groups that hold them are read."""
    with named_in_errors(unit.documents), pq.ParquetFile(unit.documents) as file:
        sizes = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
        ends = list(accumulate(sizes))
        groups = [
            index
            for index, (size, end) in enumerate(zip(sizes, ends, strict=True))
            if end > unit.first and end - size < unit.stop
        ]
        before = ends[groups[0]] - sizes[groups[0]]
        return file.read_row_groups(groups).slice(unit.first - before, unit.stop - unit.first)


def _morphemes(ids: pa.ChunkedArray, sources: pa.ChunkedArray, texts: Sequence[str]) -> pa.Table:
    if _analyzer is None:
        raise AssertionError("the worker was started without its analyzer")
    columns: list[list[pa.Array]] = [[pa.array([], kind)] for kind in _ELEMENTS]
    lengths: list[Ints] = []  # of the lists
    for batch in _analyzer.analyze_batches(texts):  # to Arrow at once: strings cost most where caches have lost them
        found = batch.forms, batch.tags, batch.starts, batch.ends, batch.sentences, batch.eojeols
        for held, values, kind in zip(columns, found, _ELEMENTS, strict=True):
            held.append(pa.array(values, kind))
        lengths.append(np.diff(batch.bounds))
    bounds = pa.array(np.cumsum(np.concatenate([[0], *lengths])), pa.int32())
    lists = [pa.ListArray.from_arrays(bounds, pa.concat_arrays(held)) for held in columns]
    return pa.table([ids, sources, *lists], schema=SCHEMA)


def _joined(outcome: Outcome[_Slice, _Done]) -> Counts:
    """The part of a slice that was halved: the pieces in their order, and the documents that were lost."""
    pieces = [done.piece for done in outcome.results]
    failed = pa.Table.from_pylist([_failed_row(one) for one in outcome.lost], _FAILED)
    table = pa.concat_tables([SCHEMA.empty_table(), *map(read_table, pieces)]).combine_chunks()
    counts = _finish(outcome.unit, table, failed)
    for piece in pieces:
        piece.unlink()
    return counts


def _failed_row(lost: Lost[_Slice]) -> dict[str, str]:
    document = _read_slice(lost.unit)
    where = {name: document[name][0].as_py() for name in ("id", "source")}
    return where | {"reason": f"kiwi_{lost.reason}", "detail": lost.detail}


def _finish(unit: _Slice, table: pa.Table, failed: pa.Table) -> Counts:
    output, name = unit.part.output, f"{unit.part.name}.parquet"
    files = [write_parquet(output / "morphemes" / name, table, output)]
    if failed.num_rows:
        files.append(write_parquet(output / "failed" / name, failed, output))
    else:
        (output / "failed" / name).unlink(missing_ok=True)
    return unit.part.finish(files, _counts(table, failed))


def _counts(table: pa.Table, failed: pa.Table) -> Counts:
    counts = {"documents": table.num_rows, "failed": failed.num_rows}
    for name, column in (("sentences", "sentence"), ("eojeols", "eojeol")):
        for lists in table[column].chunks:
            bounds = lists.offsets.to_numpy().astype(np.int64)
            begins = changes(lists.flatten().to_numpy(), bounds - bounds[0])
            counts[name] = counts.get(name, 0) + int(begins.sum())
    return counts | {"morphemes": pc.sum(pc.list_value_length(table["form"])).as_py() or 0}
