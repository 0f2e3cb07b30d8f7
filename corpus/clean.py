"""Source files -> documents worth learning from, and the dropped ones, each with its reason.

Three steps. `read`: chunks of the sources become parts in the scratch folder, all rows in them, faults noted. Then
DuckDB looks at ids and text hashes of all parts at once. `sift`: each part becomes documents and dropped rows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.documents import document_id
from corpus.duplicates import duplicates_of_part, find_duplicates, refuse_repeated_ids, text_hash
from corpus.filters import drop_reasons
from corpus.normalize import normalize_many
from corpus.parts import Counts, Part, keep_only, key_of, unfinished, write_parquet
from corpus.personal import mask
from corpus.readers import Chunk, Row, chunks, rows
from corpus.settings import CleanSettings
from corpus.workers import run_units
from korbert.errors import CorpusError
from korbert.progress import track

__all__ = ["Judged", "clean", "judge"]

_VERSION = 1  # raise it when the same input gives other bytes
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
_ROW_GROUP_ROWS = 1 << 10  # `analyze` reads a slice of a part at a time


@dataclass(frozen=True)
class _Read:
    """Work unit: a chunk of a source to a part of rows."""

    part: Part
    index: int
    chunk: Chunk
    settings: CleanSettings

    @property
    def path(self) -> Path:
        return self.part.work / f"{self.part.name}.parquet"


@dataclass(frozen=True)
class _Sift:
    """Work unit: a part of rows to documents and dropped rows."""

    part: Part
    index: int
    rows: Path
    duplicates: Path | None


def clean(settings: CleanSettings, sources: Mapping[str, Sequence[Path]], output: Path, *, workers: int) -> Counts:
    """Writes `output`/documents/part-*.parquet (id, source, text) and dropped/part-*.parquet (id, source, reason,
    detail, text); id of a dropped row is null where none could be read, and text is then the raw row.

    sources: name of a source -> its files. Returns how many rows were read, kept and dropped, in all, by source
    (`kept.wiki`) and by reason (`dropped.too_short`). Raises CorpusError where a file is absent or cut off, an id is
    given twice, or no document is left.
    """
    for source in settings.sources:
        _check_files(source.name, sources.get(source.name, ()))
    read, sums = _read_all(settings, sources, output, workers)
    _refuse_undecodable(settings, sums)
    paths = [unit.work / f"{unit.name}.parquet" for unit in read]
    if not paths:
        raise CorpusError(f"{_all_files(sources)}: nothing in there: name files that hold text in [[clean.sources]]")
    with track("clean: ids", total=None):
        refuse_repeated_ids(paths, output, workers)
    duplicates = output / "work" / "duplicates.parquet" if settings.exact_duplicates else None
    if duplicates is not None:
        with track("clean: equal", total=None):
            find_duplicates(paths, output, workers, duplicates)
    everything = key_of(settings, *(unit.key for unit in read))
    units = [
        _Sift(Part(output, "sift", unit.name, everything), index, path, duplicates)
        for index, (unit, path) in enumerate(zip(read, paths, strict=True))
    ]
    counts = _sift_all(units, workers) | {name: sums[name] for name in sorted(sums) if name.startswith("masked.")}
    if not counts["documents"]:
        reasons = ", ".join(f"{number:,} {name}" for name, number in counts.items() if name.startswith("dropped."))
        raise CorpusError(f"{_all_files(sources)}: no document is left ({reasons}): see the [clean] settings")
    for folder in ("documents", "dropped"):
        keep_only(output / folder, [f"{unit.part.name}.parquet" for unit in units])
    return counts


def _check_files(name: str, files: Sequence[Path]) -> None:
    if not files:
        raise CorpusError(f"source {name!r}: no file: check its path in the recipe and --data")
    for path in files:
        if not path.is_file():
            raise CorpusError(f"{path}: no such file: check the path of source {name!r} in the recipe and --data")


def _all_files(sources: Mapping[str, Sequence[Path]]) -> str:
    files = [str(path) for paths in sources.values() for path in paths]
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


def _read_all(
    settings: CleanSettings, sources: Mapping[str, Sequence[Path]], output: Path, workers: int
) -> tuple[list[Part], Counter[str]]:
    """All parts of the first step, in order, and the sums of their counts.

    Chunks are read, hashed and, if their part is not done, worked on.
    """
    parts: list[Part] = []
    sums: Counter[str] = Counter()

    def pending() -> Iterator[_Read]:
        for chunk in _all_chunks(settings, sources):
            made_from = [item for segment in chunk.segments for item in (segment.file, segment.first, segment.data)]
            key = key_of(settings, _VERSION, chunk.source.name, *made_from)
            parts.append(Part(output, "read", f"part-{len(parts):05d}", key))
            done = parts[-1].finished()
            if done is None:
                yield _Read(parts[-1], len(parts) - 1, chunk, settings)
            else:
                sums.update(done)
                advance(_size(chunk))

    with track("clean: read", total=None, unit="bytes") as advance:
        for outcome in run_units(_read, pending(), workers=workers):
            sums.update(outcome.results[0])
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


def _all_chunks(settings: CleanSettings, sources: Mapping[str, Sequence[Path]]) -> Iterator[Chunk]:
    for source in settings.sources:
        yield from chunks(source, sources[source.name], settings.part_bytes)


def _size(chunk: Chunk) -> int:
    return sum(len(segment.data) for segment in chunk.segments)


def _read(unit: _Read) -> Counts:
    columns: dict[str, list[object]] = {name: [] for name in _READ_SCHEMA.names}
    source = unit.chunk.source.name
    found = list(rows(unit.chunk))
    judged, masked = judge(found, unit.settings)
    for position, (row, (text, reason, detail)) in enumerate(zip(found, judged, strict=True)):
        high, low = (0, 0) if row.reason else text_hash(text)
        values = {
            "id": None if row.id is None else document_id(source, row.id),
            "source": source,
            "text": text,
            "reason": reason,
            "detail": detail,
            "place": row.place,
            "part": unit.index,
            "position": position,
            "hash_high": high,
            "hash_low": low,
        }
        for name, value in values.items():
            columns[name].append(value)
    table = pa.table(columns, _READ_SCHEMA)
    path = write_parquet(unit.path, table, unit.part.output, _ROW_GROUP_ROWS)
    counts = {f"masked.{kind}": number for kind, number in masked.items()}
    counts |= {f"{source}.undecodable": sum(row.undecodable for row in found), f"{source}.bytes": _size(unit.chunk)}
    return unit.part.finish([path], {"rows": table.num_rows} | counts)


class Judged(NamedTuple):
    """What becomes of a row: its text as the corpus would have it, and the reason to drop it, with details."""

    text: str
    reason: str | None
    detail: str | None


def judge(found: Sequence[Row], settings: CleanSettings) -> tuple[list[Judged], Counter[str]]:
    """Each row with its text made uniform, personal data masked, and filtered; and how often each kind was masked.

    A row that could not be read keeps its text and its reason. What only other rows show, equal text, is not looked at.
    """
    uniform = normalize_many((row.text for row in found if row.reason is None), settings.normalize)
    texts, masked = mask(uniform, settings.personal)
    good = zip(texts, drop_reasons(texts, settings.filters), strict=True)
    judged: list[Judged] = []
    for row in found:
        if row.reason is None:
            text, dropped = next(good)
            judged.append(Judged(text, *(dropped or (None, None))))
        else:
            judged.append(Judged(row.text, row.reason, row.detail))
    return judged, masked


def _sift_all(units: Sequence[_Sift], workers: int) -> Counts:
    """The second step over all parts; what `clean` returns."""
    pending, totals = unfinished(units)
    with track("clean: sift", total=len(units), unit="parts") as advance:
        advance(len(units) - len(pending))
        for outcome in run_units(_sift, pending, workers=workers):
            totals.update(outcome.results[0])
            advance(1)
    names = sorted(totals, key=lambda name: ("." in name, name))  # the sums before what they consist of
    return {name: totals[name] for name in names}


def _sift(unit: _Sift) -> Counts:
    table = pq.read_table(unit.rows)
    if unit.duplicates is not None:
        table = _with_duplicates(table, duplicates_of_part(unit.duplicates, unit.index))
    documents = table.filter(pc.is_null(table["reason"])).select(["id", "source", "text"])
    dropped = table.filter(pc.is_valid(table["reason"])).select(["id", "source", "reason", "detail", "text"])
    files = [
        write_parquet(unit.part.output / folder / f"{unit.part.name}.parquet", kind, unit.part.output, _ROW_GROUP_ROWS)
        for folder, kind in (("documents", documents), ("dropped", dropped))
    ]
    return unit.part.finish(files, _counts(documents, dropped))


def _with_duplicates(table: pa.Table, kept: Mapping[str, str]) -> pa.Table:
    """The table with the reason of documents that have the text of another, which the detail names."""
    if not kept:
        return table
    others = [kept.get(identifier) for identifier in table["id"].to_pylist()]
    other = pa.array(others, pa.string())
    reason = pc.if_else(pc.is_valid(other), "exact_duplicate", table["reason"])
    detail = pc.coalesce(other, table["detail"])
    for name, column in (("reason", reason), ("detail", detail)):
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _counts(documents: pa.Table, dropped: pa.Table) -> Counts:
    chars = pc.sum(pc.utf8_length(documents["text"])).as_py() or 0
    counts = {"read": documents.num_rows + dropped.num_rows, "documents": documents.num_rows}
    counts |= {"dropped": dropped.num_rows, "chars": chars}
    for prefix, column in (("kept", documents["source"]), ("dropped", dropped["reason"])):
        counts |= {f"{prefix}.{pair['values']}": pair["counts"] for pair in column.value_counts().to_pylist()}
    return counts
