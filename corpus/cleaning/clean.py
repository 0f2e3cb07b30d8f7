"""Source files -> documents worth learning from, and the dropped ones, each with its reason.

Three steps. `read`, here: chunks of the sources become parts in the scratch folder, all rows in them, each judged by
itself. Then corpus.cleaning.deduplication, over all parts at once, and corpus.cleaning.writing, part by part.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpus.cleaning.contamination import load_index, make_index
from corpus.cleaning.deduplication import deduplicate, measures, scratch_path
from corpus.cleaning.duplicates import text_hash
from corpus.cleaning.features import Hashes, measured
from corpus.cleaning.screening import Screened, screen
from corpus.cleaning.writing import write_documents
from corpus.documents import document_id
from corpus.execution.parts import ROW_GROUP_ROWS, Counts, Part, key_of, read_table, write_parquet
from corpus.execution.workers import Lost, Outcome, Workers, local_threads, run_units
from corpus.readers import Chunk, SourceRow, chunks, count_records, rows
from corpus.readers.records import File
from corpus.settings import MIB, CleanSettings
from korbert.durable import sha256_of
from korbert.errors import CorpusError
from korbert.progress import track

__all__ = ["clean"]

_VERSION = 1  # raise it when the same input gives other bytes
_LIBRARIES = ("numpy", "pyarrow", "duckdb", "mwparserfromhell")
_READ_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("text", pa.large_string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("place", pa.string()),
        ("part", pa.int32()),
        ("position", pa.int32()),
        ("hash_high", pa.uint64()),
        ("hash_low", pa.uint64()),
    ]
)
_MEASURE_ROWS = 1 << 13  # DuckDB holds whole row groups
_HIT_ROWS = 1 << 20


# What a part may take before it is halved, down to the record that hangs: some ten times what wikitext, the slowest
# kind, takes on a busy machine.
_SECONDS_PER_MIB = 30.0
_MIN_SECONDS = 60.0


@dataclass(frozen=True)
class _Read:
    """Work unit: a chunk of a source to a part of rows, and what `deduplicate` needs of them.

    index: of evaluation sets, if there are any. first, stop: where it was halved, the records of the chunk that it is
    of, about `size` bytes; stop is None for the whole chunk.
    """

    part: Part
    number: int
    chunk: Chunk
    settings: CleanSettings
    index: Path | None
    size: int
    first: int = 0
    stop: int | None = None


@dataclass(frozen=True)
class _Done:
    """What a worker made of a unit: counts, and where it was halved the files of its tables, by kind."""

    counts: Counts
    first: int
    pieces: dict[str, Path]


def clean(
    settings: CleanSettings, sources: Mapping[str, Sequence[File]], output: Path, *, workers: int | Workers
) -> Counts:
    """Writes `output`/documents/part-*.parquet (id, source, text) and dropped/part-*.parquet (id, source, reason,
    detail, text); id of a dropped row is null where none could be read, and text is then the raw row. Where lines are
    taken out, frequent/part-00000.parquet (text, documents) holds them.

    sources: name of a source or evaluation set -> its files. Returns how many rows were read, kept and dropped, in all,
    by source (`kept.wiki`) and by reason (`dropped.too_short`), and more by kind (`masked.email`). Raises CorpusError
    where a file is absent or cut off, an id is given twice, or no document is left.
    """
    for name, _ in settings.patterns:
        _check_files(name, sources.get(name, ()))
    index = output / "work" / "evaluation.npz" if settings.evaluation else None
    if index is not None:
        make_index(settings, sources).save(index, output)
    parts, sums = _read_all(settings, sources, output, workers, index)
    _refuse_undecodable(settings, sums)
    if not parts:
        raise CorpusError(f"{_all_files(sources)}: nothing in there: name files that hold text in [[clean.sources]]")
    key = key_of(settings, *(part.key for part in parts))
    removals = deduplicate(settings, parts, output, local_threads(workers), key)
    counts = write_documents(settings, parts, removals, output, workers=workers, key=key)
    counts |= {name: sums[name] for name in sorted(sums) if name.startswith(("masked.", "contaminated."))}
    if index is not None:
        counts |= _seen(index, [scratch_path(part, "hits") for part in parts])
    if not counts["documents"]:
        reasons = ", ".join(f"{number:,} {name}" for name, number in counts.items() if name.startswith("dropped."))
        raise CorpusError(f"{_all_files(sources)}: no document is left ({reasons}): see the [clean] settings")
    return counts


def _check_files(name: str, files: Sequence[File]) -> None:
    if not files:
        raise CorpusError(f"{name!r}: no file: check its path in the recipe and --data")
    for path in files:
        if not path.is_file():
            raise CorpusError(f"{path}: no such file: check the path of {name!r} in the recipe and --data")


def _all_files(sources: Mapping[str, Sequence[File]]) -> str:
    files = [str(path) for paths in sources.values() for path in paths]
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


def _read_all(
    settings: CleanSettings,
    sources: Mapping[str, Sequence[File]],
    output: Path,
    workers: int | Workers,
    index: Path | None,
) -> tuple[list[Part], Counter[str]]:
    """All parts of the first step, in order, and the sums of their counts.

    Chunks are read, hashed and, if their part is not done, worked on.
    """
    parts: list[Part] = []
    sums: Counter[str] = Counter()
    wanted = "" if index is None else sha256_of(index)

    def pending() -> Iterator[_Read]:
        for chunk in _all_chunks(settings, sources):
            made_from = [
                item
                for segment in chunk.segments
                for item in (segment.file, segment.first, segment.data, segment.record_bytes)
            ]
            key = key_of(settings, _VERSION, chunk.source.name, wanted, *made_from, libraries=_LIBRARIES)
            parts.append(Part(output, "read", f"part-{len(parts):05d}", key))
            done = parts[-1].finished()
            if done is None:
                yield _Read(parts[-1], len(parts) - 1, chunk, settings, index, _size(chunk))
            else:
                sums.update(done)
                advance(_size(chunk))

    with track("clean: read", total=None, unit="bytes") as advance:
        for outcome in run_units(_read, pending(), workers=workers, deadline=_deadline, split=_halves):
            sums.update(_merged(outcome) if outcome.halved else outcome.results[0].counts)
            advance(_size(outcome.unit.chunk))
    return parts, sums


def _refuse_undecodable(settings: CleanSettings, sums: Mapping[str, int]) -> None:
    """Raises CorpusError where more of a source than its settings allow is no text in the encoding."""
    for source in settings.sources:
        wrong, size = (sums.get(f"{source.name}.{name}", 0) for name in ("undecodable", "bytes"))
        if wrong > source.max_undecodable * size:
            raise CorpusError(
                f"source {source.name!r}: {wrong:,} of {size:,} bytes are no text in the encoding that was "
                f"{'found' if source.encoding == 'auto' else 'given'}: set encoding of the source in the recipe, "
                "or max_undecodable, which drops those rows"
            )


def _all_chunks(settings: CleanSettings, sources: Mapping[str, Sequence[File]]) -> Iterator[Chunk]:
    for source in settings.sources:
        yield from chunks(source, sources[source.name], settings.part_bytes, settings.filters.max_record_bytes)


def _size(chunk: Chunk) -> int:
    return sum(len(segment.data) for segment in chunk.segments)


def _deadline(unit: _Read) -> float:
    return max(_MIN_SECONDS, unit.size / MIB * _SECONDS_PER_MIB)


def _halves(unit: _Read) -> tuple[_Read, _Read] | None:
    """Two units that write pieces for `_merged`; None for a single record."""
    stop = count_records(unit.chunk) if unit.stop is None else unit.stop
    if stop - unit.first < 2:
        return None
    middle, size = (unit.first + stop) // 2, unit.size // 2
    return replace(unit, stop=middle, size=size), replace(unit, first=middle, stop=stop, size=size)


def _read(unit: _Read) -> _Done:
    """A chunk to its part, or to a piece of it where it was halved."""
    source = unit.chunk.source.name
    found = list(rows(unit.chunk, unit.first, unit.stop))
    index = None if unit.index is None else load_index(unit.index)
    screened, counts, hits = screen(found, unit.settings, index)
    table = _table(unit, found, screened)
    tables = {"read": table}
    tables |= _measured(unit, table.filter(pc.is_null(table["reason"])), hits)
    counts[f"{source}.undecodable"] = sum(row.undecodable for row in found)
    if unit.stop is None:
        return _Done(_finish(unit, tables, counts), unit.first, {})
    pieces = {kind: unit.part.work / f"{unit.part.name}.{unit.first}-{unit.stop}.{kind}.parquet" for kind in tables}
    for kind, path in pieces.items():
        write_parquet(path, tables[kind], unit.part.output, scratch=True)
    return _Done(dict(counts), unit.first, pieces)


def _measured(unit: _Read, documents: pa.Table, hits: Hashes) -> dict[str, pa.Table]:
    """What `deduplicate` needs of the documents, by kind, and the hashes of what they share with evaluation sets."""
    kinds = dict(measures(unit.settings.duplicates))
    tables = dict(zip(kinds, measured(documents, *kinds.values()), strict=True))
    return tables if unit.index is None else tables | {"hits": pa.table({"hash": hits})}


def _table(unit: _Read, found: Sequence[SourceRow], screened: Sequence[Screened]) -> pa.Table:
    """The rows of a unit, with the columns of _READ_SCHEMA."""
    source = unit.chunk.source.name
    hashes = [(0, 0) if row.reason else text_hash(one.text) for row, one in zip(found, screened, strict=True)]
    columns = {
        "id": [None if row.id is None else document_id(source, row.id) for row in found],
        "source": pa.repeat(source, len(found)),
        "text": [one.text for one in screened],
        "reason": [one.reason for one in screened],
        "detail": [one.detail for one in screened],
        "place": [row.place for row in found],
        "part": np.full(len(found), unit.number, np.int32),
        "position": np.arange(unit.first, unit.first + len(found), dtype=np.int32),
        "hash_high": [high for high, _ in hashes],
        "hash_low": [low for _, low in hashes],
    }
    return pa.table(columns, _READ_SCHEMA)


def _merged(outcome: Outcome[_Read, _Done]) -> Counts:
    """The part of a chunk that was halved: the pieces in their order, between them the records that were lost."""
    unit = outcome.unit
    counts: Counter[str] = Counter()
    read = [(one.unit.first, _lost(one)) for one in outcome.lost]
    others = {
        kind: [empty] for kind, empty in _measured(unit, _READ_SCHEMA.empty_table(), np.empty(0, np.uint64)).items()
    }
    for done in outcome.results:
        counts.update(done.counts)
        read.append((done.first, read_table(done.pieces["read"])))
        for kind, held in others.items():
            held.append(read_table(done.pieces[kind]))
    tables = {"read": pa.concat_tables(table for _, table in sorted(read, key=itemgetter(0)))}
    tables |= {kind: pa.concat_tables(held) for kind, held in others.items()}
    if unit.index is not None:
        tables["hits"] = pa.table({"hash": np.unique(tables["hits"]["hash"].to_numpy())})
    finished = _finish(unit, {kind: table.combine_chunks() for kind, table in tables.items()}, counts)
    for done in outcome.results:
        for path in done.pieces.values():
            path.unlink()
    return finished


def _lost(lost: Lost[_Read]) -> pa.Table:
    """The row of a record that ended its worker."""
    found = list(rows(lost.unit.chunk, lost.unit.first, lost.unit.stop, parsed=False))
    screened = [Screened(row.text, f"clean_{lost.reason}", f"{row.place}: {lost.detail}") for row in found]
    return _table(lost.unit, found, screened)


def _finish(unit: _Read, tables: Mapping[str, pa.Table], counts: Counts) -> Counts:
    rows_of = {"read": ROW_GROUP_ROWS, "hits": _HIT_ROWS}
    output = unit.part.output
    files = [
        write_parquet(scratch_path(unit.part, kind), table, output, rows_of.get(kind, _MEASURE_ROWS), scratch=True)
        for kind, table in tables.items()
    ]
    counts |= {f"{unit.chunk.source.name}.bytes": _size(unit.chunk), "rows": tables["read"].num_rows}
    return unit.part.finish(files, counts)


def _seen(path: Path, hits: Sequence[Path]) -> Counts:
    """Of each evaluation set: its texts, those long enough to be looked for, and those that were found."""
    index = load_index(path)
    found = index.seen(np.unique(np.concatenate([read_table(one)["hash"].to_numpy() for one in hits])))
    counts: Counts = {}
    for name, (texts, looked_for) in index.texts().items():
        counts |= {
            f"evaluation.{name}.{kind}": number for kind, number in (("texts", texts), ("looked_for", looked_for))
        }
        counts[f"evaluation.{name}.found"] = found[name]
    return counts
