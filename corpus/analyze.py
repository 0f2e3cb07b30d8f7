"""Documents -> sentences and morphemes, by Kiwi, once for all later stages.

A part is a slice of about `part_bytes` of one file of documents. A slice that crashes or hangs Kiwi is halved until
the faulty document is isolated. It goes to `failed/`; the part holds the others, with the same bytes however the slice
was halved.
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
from corpus.execution.workers import Outcome, Workers, run_units
from corpus.morphemes import SCHEMA, Ints
from corpus.settings import AnalyzeSettings
from korbert.durable import sha256_of
from korbert.errors import CorpusError
from korbert.progress import track
from korbert.tokenization.analyzer import Analyzer, changes
from korbert.tokenization.settings import AnalyzerOptions

__all__ = ["analyze"]

_VERSION = 1  # raise it when the same input gives different bytes
_LIBRARIES = ("kiwipiepy", "kiwipiepy_model", "numpy", "pyarrow")
_MIN_DEADLINE_SHARE = 1 / 32  # of the deadline of a part, for the smallest slice

_FAILED = pa.schema([("id", pa.string()), ("source", pa.string()), ("reason", pa.string()), ("detail", pa.string())])

_ELEMENTS = [field.type.value_type for field in SCHEMA if pa.types.is_list(field.type)]

_analyzer: Analyzer | None = None  # one in each worker process


@dataclass(frozen=True)
class _Slice:
    """Work unit: rows `first` to `stop` of a file of documents. whole: not halved, so it is the part."""

    part: Part
    documents: Path
    first: int
    stop: int
    text_bytes: int
    whole: bool = True


@dataclass(frozen=True)
class _SliceResult:
    """Counts of a whole slice, or the file of a piece where the slice was halved."""

    counts: Counts
    piece: Path


def analyze(settings: AnalyzeSettings, documents: Path, output: Path, *, workers: int | Workers) -> Counts:
    """Writes `output`/morphemes/part-*.parquet, with the columns of corpus.morphemes.SCHEMA, and where Kiwi failed
    failed/part-*.parquet: id, source, reason (kiwi_crashed, kiwi_timeout), detail.

    documents: the folder of parts that `clean` wrote. Returns the numbers of documents, failed documents, sentences,
    eojeols and morphemes.
    """

    def deadline(unit: _Slice) -> float:
        return settings.deadline_seconds * max(_MIN_DEADLINE_SHARE, unit.text_bytes / settings.part_bytes)

    units = list(_slices(settings, documents, output))
    pending, totals = unfinished(units)
    # Bytes, as their time is alike; documents of one source may be ten times as long as those of the next.
    total, left = (sum(unit.text_bytes for unit in some) for some in (units, pending))
    with track("analyze", total=total, unit="bytes", done=total - left) as advance:
        for outcome in run_units(
            _analyze,
            pending,
            workers=workers,
            deadline=deadline,
            split=_halves,
            initializer=_load_analyzer,
            initargs=(settings.options,),
        ):
            totals.update(_merged(outcome) if outcome.halved else outcome.results[0].counts)
            advance(outcome.unit.text_bytes)
    for folder in ("morphemes", "failed"):
        keep_only(output / folder, [f"{unit.part.name}.parquet" for unit in units])
    return {name: totals[name] for name in ("documents", "failed", "sentences", "eojeols", "morphemes")}


def _slices(settings: AnalyzeSettings, documents: Path, output: Path) -> Iterator[_Slice]:
    """Slices of each file of documents. A slice ends as soon as it holds `part_bytes`."""
    paths = part_files(documents)
    if not paths:
        raise CorpusError(f"{documents}: no part-*.parquet in there: run `korbert clean` first")
    number = 0
    for path in paths:
        lengths = pc.binary_length(read_table(path, ["text"])["text"]).to_pylist()
        content = sha256_of(path)
        first = size = 0
        for stop, length in enumerate(lengths, 1):
            size += length
            if size >= settings.part_bytes or stop == len(lengths):
                key = key_of(settings, _VERSION, content, first, stop, libraries=_LIBRARIES)
                yield _Slice(Part(output, "analyze", f"part-{number:05d}", key), path, first, stop, size)
                first, size, number = stop, 0, number + 1


def _halves(unit: _Slice) -> tuple[_Slice, _Slice] | None:
    """Two slices that write pieces for `_merged`; None for a single document."""
    if unit.stop - unit.first < 2:
        return None
    middle = (unit.first + unit.stop) // 2
    size = unit.text_bytes // 2
    return (
        replace(unit, stop=middle, text_bytes=size, whole=False),
        replace(unit, first=middle, text_bytes=size, whole=False),
    )


def _load_analyzer(options: AnalyzerOptions) -> None:
    """Loads Kiwi before the first unit, so that no deadline includes it.

    Automatic garbage collection is off, as millions of small objects would trigger it over and over; `_analyze` runs it
    once per unit.
    """
    global _analyzer
    _analyzer = Analyzer(options)
    _analyzer.analyze("한국어")
    gc.freeze()
    gc.disable()


def _analyze(unit: _Slice) -> _SliceResult:
    """Writes the part of a slice, or a piece of it where the slice was halved."""
    gc.collect()
    documents = _read_slice(unit)
    table = _morphemes(documents["id"], documents["source"], documents["text"].to_pylist())
    piece = unit.part.work / f"{unit.part.name}.{unit.first}-{unit.stop}.parquet"
    if unit.whole:
        return _SliceResult(_finish(unit, table, _FAILED.empty_table()), piece)
    return _SliceResult({}, write_parquet(piece, table, unit.part.output, scratch=True))


def _read_slice(unit: _Slice) -> pa.Table:
    """The documents of a slice. Only the row groups that hold them are read."""
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
    """The morphemes of documents, with the columns of SCHEMA."""
    if _analyzer is None:
        raise AssertionError("the worker was started without its analyzer")
    columns: list[list[pa.Array]] = [[pa.array([], kind)] for kind in _ELEMENTS]
    lengths: list[Ints] = []  # of the lists
    for batch in _analyzer.analyze_batches(texts):
        # Convert to Arrow right away, while the strings are still in the CPU caches.
        fields = batch.forms, batch.tags, batch.starts, batch.ends, batch.sentences, batch.eojeols
        for column, values, kind in zip(columns, fields, _ELEMENTS, strict=True):
            column.append(pa.array(values, kind))
        lengths.append(np.diff(batch.bounds))
    bounds = pa.array(np.cumsum(np.concatenate([[0], *lengths])), pa.int32())
    lists = [pa.ListArray.from_arrays(bounds, pa.concat_arrays(column)) for column in columns]
    return pa.table([ids, sources, *lists], schema=SCHEMA)


def _merged(outcome: Outcome[_Slice, _SliceResult]) -> Counts:
    """Writes the part of a slice that was halved: its pieces in order, and the documents that were lost."""
    pieces = [result.piece for result in outcome.results]
    table = pa.concat_tables([SCHEMA.empty_table(), *map(read_table, pieces)]).combine_chunks()
    failed = []
    for lost in outcome.lost:
        document = _read_slice(lost.unit).select(["id", "source"]).to_pylist()[0]
        failed.append(document | {"reason": f"kiwi_{lost.reason}", "detail": lost.detail})
    counts = _finish(outcome.unit, table, pa.Table.from_pylist(failed, _FAILED))
    for piece in pieces:
        piece.unlink()
    return counts


def _finish(unit: _Slice, table: pa.Table, failed: pa.Table) -> Counts:
    """Writes the files and the record of a part."""
    output, name = unit.part.output, f"{unit.part.name}.parquet"
    files = [write_parquet(output / "morphemes" / name, table, output)]
    if failed.num_rows:
        files.append(write_parquet(output / "failed" / name, failed, output))
    else:
        (output / "failed" / name).unlink(missing_ok=True)

    counts = {"documents": table.num_rows, "failed": failed.num_rows}
    for column, counted in (("sentence", "sentences"), ("eojeol", "eojeols")):
        for lists in table[column].chunks:
            bounds = lists.offsets.to_numpy().astype(np.int64)
            begins = changes(lists.flatten().to_numpy(), bounds - bounds[0])
            counts[counted] = counts.get(counted, 0) + int(begins.sum())
    counts["morphemes"] = pc.sum(pc.list_value_length(table["form"])).as_py() or 0
    return unit.part.finish(files, counts)
