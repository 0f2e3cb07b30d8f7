"""Source files -> documents worth learning from, and the dropped ones, each with its reason.

Three steps. `read`: chunks of the sources become parts in the scratch folder, all rows in them, each judged by itself.
`join`: DuckDB looks at all parts at once for what is there twice. `sift`: each part becomes documents and dropped rows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.contamination import load_index, make_index
from corpus.documents import document_id
from corpus.duplicates import find_equal, find_near, refuse_repeated_ids, rows_of_part, signature_table, text_hash
from corpus.features import Measure, measured
from corpus.filters import too_short
from corpus.judging import judge
from corpus.lines import find_frequent, line_table, without_lines
from corpus.parts import Counts, Part, keep_only, key_of, unfinished, write_parquet
from corpus.readers import Chunk, chunks, rows
from corpus.readers.records import File
from corpus.settings import CleanSettings, DuplicateSettings
from corpus.templates import find_templates, run_table
from corpus.workers import Workers, local_threads, run_units
from korbert.errors import CorpusError
from korbert.progress import track

__all__ = ["clean"]

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
_MEASURE_ROWS = 1 << 13  # DuckDB holds whole row groups
_ROW_GROUP_ROWS = 1 << 10  # `analyze` reads a slice of a part at a time


@dataclass(frozen=True)
class _Read:
    """Work unit: a chunk of a source to a part of rows, and what `join` needs of them.

    index: of evaluation sets, if there are any.
    """

    part: Part
    number: int
    chunk: Chunk
    settings: CleanSettings
    index: Path | None


class _Made:
    """Where the read parts and what was found in them lie. A path is None where the settings ask for no such thing."""

    def __init__(self, output: Path, parts: Sequence[Part], settings: CleanSettings) -> None:
        self._parts = parts
        found = output / "work" / "join"
        duplicates = settings.duplicates
        self.index = output / "work" / "evaluation.npz" if settings.evaluation else None
        self.equal = found / "equal.parquet" if duplicates.equal else None
        self.near = found / "near.parquet" if duplicates.near else None
        self.templates = found / "templates.parquet" if duplicates.template_share < 1 else None
        self.lines = found / "lines.parquet" if duplicates.line_documents else None

    def files(self, folder: str = "read") -> list[Path]:
        return [_beside(part, folder) for part in self._parts]


def _beside(part: Part, folder: str) -> Path:
    """What was made of a part of another kind than its rows."""
    return part.work.with_name(folder) / f"{part.name}.parquet"


@dataclass(frozen=True)
class _Sift:
    """Work unit: a part of rows to documents and dropped rows.

    repeated: reason -> file of the rows that go for it, with the detail as its last column. lines: file of the lines
    that are taken out.
    """

    part: Part
    number: int
    rows: Path
    repeated: tuple[tuple[str, Path], ...]
    lines: Path | None
    settings: CleanSettings


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
    made = _Made(output, (), settings)
    if made.index is not None:
        make_index(settings, sources).save(made.index, output)
    parts, sums = _read_all(settings, sources, output, workers, made.index)
    _refuse_undecodable(settings, sums)
    if not parts:
        raise CorpusError(f"{_all_files(sources)}: nothing in there: name files that hold text in [[clean.sources]]")
    made = _Made(output, parts, settings)
    everything = key_of(settings, *(part.key for part in parts))
    _join(settings, made, output, local_threads(workers), everything)
    found = [("exact_duplicate", made.equal), ("near_duplicate", made.near), ("template_made", made.templates)]
    repeated = tuple((reason, path) for reason, path in found if path is not None)
    units = [
        _Sift(Part(output, "sift", part.name, everything), number, path, repeated, made.lines, settings)
        for number, (part, path) in enumerate(zip(parts, made.files(), strict=True))
    ]
    counts = _sift_all(units, workers)
    counts |= {name: sums[name] for name in sorted(sums) if name.startswith(("masked.", "contaminated."))}
    if made.index is not None:
        counts |= _seen(made.index, made.files("hits"))
    if not counts["documents"]:
        reasons = ", ".join(f"{number:,} {name}" for name, number in counts.items() if name.startswith("dropped."))
        raise CorpusError(f"{_all_files(sources)}: no document is left ({reasons}): see the [clean] settings")
    for folder in ("documents", "dropped"):
        keep_only(output / folder, [f"{unit.part.name}.parquet" for unit in units])
    if made.lines is None:
        keep_only(output / "frequent", ())
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
    wanted = b"" if index is None else _digest(index)

    def pending() -> Iterator[_Read]:
        for chunk in _all_chunks(settings, sources):
            made_from = [item for segment in chunk.segments for item in (segment.file, segment.first, segment.data)]
            key = key_of(settings, _VERSION, chunk.source.name, wanted, *made_from)
            parts.append(Part(output, "read", f"part-{len(parts):05d}", key))
            done = parts[-1].finished()
            if done is None:
                yield _Read(parts[-1], len(parts) - 1, chunk, settings, index)
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


def _all_chunks(settings: CleanSettings, sources: Mapping[str, Sequence[File]]) -> Iterator[Chunk]:
    for source in settings.sources:
        yield from chunks(source, sources[source.name], settings.part_bytes)


def _size(chunk: Chunk) -> int:
    return sum(len(segment.data) for segment in chunk.segments)


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()


def _read(unit: _Read) -> Counts:
    source = unit.chunk.source.name
    found = list(rows(unit.chunk))
    index = None if unit.index is None else load_index(unit.index)
    judged, counts, hits = judge(found, unit.settings, index)
    hashes = [(0, 0) if row.reason else text_hash(one.text) for row, one in zip(found, judged, strict=True)]
    columns = {
        "id": [None if row.id is None else document_id(source, row.id) for row in found],
        "source": pa.repeat(source, len(found)),
        "text": [one.text for one in judged],
        "reason": [one.reason for one in judged],
        "detail": [one.detail for one in judged],
        "place": [row.place for row in found],
        "part": np.full(len(found), unit.number, np.int32),
        "position": np.arange(len(found), dtype=np.int32),
        "hash_high": [high for high, _ in hashes],
        "hash_low": [low for _, low in hashes],
    }
    table = pa.table(columns, _READ_SCHEMA)
    output = unit.part.output
    files = [write_parquet(_beside(unit.part, "read"), table, output, _ROW_GROUP_ROWS, scratch=True)]
    measures = dict(_measures(unit.settings.duplicates))
    tables = measured(table.filter(pc.is_null(table["reason"])), *measures.values())
    for folder, found_there in zip(measures, tables, strict=True):
        files.append(write_parquet(_beside(unit.part, folder), found_there, output, _MEASURE_ROWS, scratch=True))
    if unit.index is not None:
        files.append(write_parquet(_beside(unit.part, "hits"), pa.table({"hash": hits}), output, scratch=True))
    counts |= {f"{source}.undecodable": sum(row.undecodable for row in found), f"{source}.bytes": _size(unit.chunk)}
    return unit.part.finish(files, {"rows": table.num_rows} | counts)


def _measures(settings: DuplicateSettings) -> Iterator[tuple[str, Measure]]:
    """Folder of the scratch files -> what `join` needs of the documents."""
    if settings.near:
        yield "signatures", partial(signature_table, least_terms=settings.near_min_terms)
    if settings.template_share < 1:
        yield "runs", partial(run_table, least_terms=settings.template_min_terms)
    if settings.line_documents:
        yield "lines", partial(line_table, least_chars=settings.line_min_chars)


def _join(settings: CleanSettings, made: _Made, output: Path, threads: int, key: str) -> None:
    """The second step: looks for what is there twice, each kind once, whatever run comes back to it."""

    def once(name: str, path: Path | None, find: Callable[[Path], list[Path]]) -> None:
        part = Part(output, "join", name, key)
        if path is not None and part.finished() is None:
            with track(f"clean: {name}", total=None):
                part.finish([path, *find(path)], {})

    def equal(path: Path) -> list[Path]:
        find_equal(made.files(), output, threads, path)
        return []

    def near(path: Path) -> list[Path]:
        find_near(made.files("signatures"), settings.duplicates.near, output, threads, path, without=made.equal)
        return []

    def templates(path: Path) -> list[Path]:
        gone = [found for found in (made.equal, made.near) if found is not None]
        limits = (settings.duplicates.template_documents, settings.duplicates.template_share)
        find_templates(made.files("runs"), *limits, output, threads, path, without=gone)
        return []

    def lines(path: Path) -> list[Path]:
        gone = [found for found in (made.equal, made.near, made.templates) if found is not None]
        texts = output / "frequent" / "part-00000.parquet"
        most = settings.duplicates.line_documents
        find_frequent(made.files("lines"), made.files(), most, output, threads, without=gone, places=path, texts=texts)
        return [texts]

    with track("clean: ids", total=None):
        refuse_repeated_ids(made.files(), output, threads)
    once("equal", made.equal, equal)
    once("near", made.near, near)
    once("templates", made.templates, templates)
    once("lines", made.lines, lines)


def _seen(path: Path, hits: Sequence[Path]) -> Counts:
    """Of each evaluation set: its texts, those long enough to be looked for, and those that were found."""
    index = load_index(path)
    found = index.seen(np.unique(np.concatenate([pq.read_table(one)["hash"].to_numpy() for one in hits])))
    counts: Counts = {}
    for name, (texts, looked_for) in index.texts().items():
        counts |= {
            f"evaluation.{name}.{kind}": number for kind, number in (("texts", texts), ("looked_for", looked_for))
        }
        counts[f"evaluation.{name}.found"] = found[name]
    return counts


def _sift_all(units: Sequence[_Sift], workers: int | Workers) -> Counts:
    """The third step over all parts; what `clean` returns."""
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
    for reason, path in unit.repeated:
        found = rows_of_part(path, unit.number)
        table = _dropped(table, found["position"].to_numpy(), reason, found[found.schema.names[-1]].to_pylist())
    counts: Counts = {}
    if unit.lines is not None:
        table, counts = _without_lines(table, rows_of_part(unit.lines, unit.number), unit.settings)
    documents = table.filter(pc.is_null(table["reason"])).select(["id", "source", "text"])
    dropped = table.filter(pc.is_valid(table["reason"])).select(["id", "source", "reason", "detail", "text"])
    files = [
        write_parquet(unit.part.output / folder / f"{unit.part.name}.parquet", kind, unit.part.output, _ROW_GROUP_ROWS)
        for folder, kind in (("documents", documents), ("dropped", dropped))
    ]
    return unit.part.finish(files, _counts(documents, dropped) | counts)


def _dropped(table: pa.Table, positions: np.ndarray, reason: str, details: Sequence[str]) -> pa.Table:
    """The table with a reason and details for the rows at those positions."""
    for name, values in (("reason", [reason] * len(positions)), ("detail", details)):
        column = np.array(table[name].to_pylist(), object)
        column[positions] = values
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(column, pa.string()))
    return table


def _without_lines(table: pa.Table, places: pa.Table, settings: CleanSettings) -> tuple[pa.Table, Counts]:
    """The table with those lines taken out of its texts, and documents dropped of which too little is left."""
    if not places.num_rows:
        return table, {}
    texts = np.array(table["text"].to_pylist(), object)
    positions, starts = np.unique(places["position"].to_numpy(), return_index=True)
    lost: dict[int, str] = {}
    for position, numbers in zip(positions, np.split(places["line"].to_numpy(), starts[1:]), strict=True):
        left = without_lines(texts[position], numbers.tolist())
        if too_short(left, settings.filters):
            lost[position] = (
                f"{len(numbers)} of its lines stand in more than {settings.duplicates.line_documents} documents"
            )
        else:
            texts[position] = left
    column = pa.array(texts, pa.large_string())
    table = table.set_column(table.schema.get_field_index("text"), "text", column)
    table = _dropped(table, np.array(list(lost), np.int64), "frequent_lines", list(lost.values()))
    return table, {"cut.documents": len(positions) - len(lost), "cut.lines": places.num_rows}


def _counts(documents: pa.Table, dropped: pa.Table) -> Counts:
    chars = pc.sum(pc.utf8_length(documents["text"])).as_py() or 0
    counts = {"read": documents.num_rows + dropped.num_rows, "documents": documents.num_rows}
    counts |= {"dropped": dropped.num_rows, "chars": chars}
    for prefix, column in (("kept", documents["source"]), ("dropped", dropped["reason"])):
        counts |= {f"{prefix}.{pair['values']}": pair["counts"] for pair in column.value_counts().to_pylist()}
    return counts
