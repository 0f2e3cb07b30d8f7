"""Documents -> sentences and morphemes, by Kiwi, once for all later stages.

A part is a slice of about `part_bytes` of one file of documents. A slice that crashes or hangs Kiwi is halved until
the faulty document is isolated. It goes to `failed/`; the part holds the others, with the same bytes however the slice
was halved.
"""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from korbert.corpus.corpus_settings import AnalyzeSettings
from korbert.corpus.execution import parts
from korbert.corpus.execution.parts import OutputPart
from korbert.corpus.execution.workers import Outcome, RecordUnit, Workers, run_units
from korbert.corpus.morphemes import SCHEMA, changes
from korbert.system import sha256_of, track
from korbert.tokenization import Analyzer, AnalyzerOptions

_VERSION = 1  # raise it when the same input gives different bytes
_LIBRARIES = ("kiwipiepy", "kiwipiepy_model", "numpy", "pyarrow")
_DOCUMENTS_AT_ONCE = 400  # as Python lists; then they become arrays
_MIN_DEADLINE_SHARE = 1 / 32  # of the deadline of a part, for the smallest slice

_FAILED = pa.schema(dict.fromkeys(("id", "source", "reason", "detail"), pa.string()))

_analyzer: Analyzer | None = None  # one in each worker process


@dataclass(frozen=True)
class _Slice(RecordUnit):
    """Work unit: some rows of a file of documents."""

    part: OutputPart
    documents: Path

    def read(self) -> pa.Table:
        """The documents. Only the row groups that hold them are read."""
        assert self.stop is not None
        with parts.named_in_errors(self.documents), pq.ParquetFile(self.documents) as file:
            group_rows = file.metadata.row_group(0).num_rows  # of all row groups but the last
            first = self.first // group_rows
            rows = file.read_row_groups([*range(first, -(-self.stop // group_rows))])
            return rows.slice(self.first - first * group_rows, self.stop - self.first)

    def finish(self, morphemes: pa.Table, failed: pa.Table) -> dict[str, int]:
        """Writes the files and the record of the part."""
        output = self.part.output
        name = f"{self.part.name}.parquet"
        files = [parts.write_parquet(output / "morphemes" / name, morphemes, output)]
        if failed.num_rows:
            files.append(parts.write_parquet(output / "failed" / name, failed, output))
        else:
            (output / "failed" / name).unlink(missing_ok=True)

        counts = {"documents": morphemes.num_rows, "failed": failed.num_rows}
        for column in ("sentence", "eojeol"):
            lists = morphemes[column].combine_chunks()
            bounds = lists.offsets.to_numpy().astype(np.int64)
            counts[f"{column}s"] = int(changes(lists.flatten().to_numpy(), bounds - bounds[0]).sum())
        counts["morphemes"] = pc.sum(pc.list_value_length(morphemes["form"])).as_py() or 0
        return self.part.finish(files, counts)


def analyze(settings: AnalyzeSettings, documents: Path, output: Path, *, workers: int | Workers) -> dict[str, int]:
    """Writes `output`/morphemes/part-*.parquet, with the columns of korbert.corpus.morphemes.SCHEMA, and where Kiwi
    failed failed/part-*.parquet: id, source, reason (kiwi_crashed, kiwi_timeout), detail.

    documents: the folder of parts that `clean` wrote. Returns the numbers of documents, failed documents, sentences,
    eojeols and morphemes.
    """
    units = {unit.part: unit for unit in _slices(settings, documents, output)}
    pending_parts, totals = parts.unfinished(units)
    pending = [units[part] for part in pending_parts]
    # Progress counts bytes, as equal bytes take about equal time; documents of one source may be ten times as long as
    # those of the next.
    total_size, pending_size = (sum(unit.size for unit in slices) for slices in (units.values(), pending))
    with track("analyze", total=total_size, unit="bytes", done=total_size - pending_size) as advance:
        for outcome in run_units(
            _analyze,
            pending,
            workers=workers,
            deadline=lambda unit: settings.deadline_seconds * max(_MIN_DEADLINE_SHARE, unit.size / settings.part_bytes),
            split=_Slice.halves,
            initializer=partial(_load_analyzer, settings.options),
        ):
            counts = _merge_pieces(outcome) if outcome.halved else outcome.results[0]
            totals.update(counts)
            advance(outcome.unit.size)
    for folder in ("morphemes", "failed"):
        parts.keep_only(output / folder, [f"{part.name}.parquet" for part in units])
    return {name: totals[name] for name in ("documents", "failed", "sentences", "eojeols", "morphemes")}


def _slices(settings: AnalyzeSettings, documents: Path, output: Path) -> Iterator[_Slice]:
    """Slices of each file of documents. A slice ends as soon as it holds `part_bytes`."""
    number = 0
    for path in parts.part_files(documents, made_by="clean"):
        lengths = pc.binary_length(parts.read_table(path, ["text"])["text"]).to_pylist()
        content = sha256_of(path)
        first = size = 0
        for stop, length in enumerate(lengths, 1):
            size += length
            if size >= settings.part_bytes or stop == len(lengths):
                key = parts.key_of(settings, _VERSION, content, first, stop, libraries=_LIBRARIES)
                part = OutputPart(output, "analyze", f"part-{number:05d}", key)
                yield _Slice(part, path, size=size, first=first, stop=stop)
                first = stop
                size = 0
                number += 1


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


def _analyze(unit: _Slice) -> dict[str, int] | pa.Table:
    """Writes the part of a slice and returns its counts; for a piece of a slice, only returns the morphemes."""
    assert _analyzer is not None
    gc.collect()
    documents = unit.read()
    fields = [field for field in SCHEMA if pa.types.is_list(field.type)]
    columns: list[list[pa.Array]] = [[pa.array([], field.type)] for field in fields]
    analyses = _analyzer.analyze_many(documents["text"].to_pylist())
    while batch := list(islice(analyses, _DOCUMENTS_AT_ONCE)):
        for column, field in zip(columns, fields, strict=True):
            column.append(pa.array([getattr(analysis, f"{field.name}s") for analysis in batch], field.type))
    lists = [pa.concat_arrays(column) for column in columns]
    table = pa.table([documents["id"], documents["source"], *lists], schema=SCHEMA)
    return table if unit.is_piece else unit.finish(table, _FAILED.empty_table())


def _merge_pieces(outcome: Outcome[_Slice, dict[str, int] | pa.Table]) -> dict[str, int]:
    """Writes the part of a slice that was halved: its pieces in order, and the lost documents."""
    table = pa.concat_tables([SCHEMA.empty_table(), *outcome.results]).combine_chunks()
    failed = []
    for lost in outcome.lost:
        document = lost.unit.read().select(["id", "source"]).to_pylist()[0]
        failed.append(document | {"reason": f"kiwi_{lost.reason}", "detail": lost.detail})
    return outcome.unit.finish(table, pa.Table.from_pylist(failed, _FAILED))
