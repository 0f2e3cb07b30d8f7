"""Source files -> clean documents, and dropped rows with their reasons.

Three steps. Reading, here: each chunk of a source becomes one part in the scratch folder, with a row for each record,
screened by itself. Then deduplication.py, over all parts at once, and writing.py, part by part.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from korbert.corpus.cleaning.contamination import NgramIndex, load_index, make_index
from korbert.corpus.cleaning.deduplication import deduplicate, measures
from korbert.corpus.cleaning.duplicates import text_hash
from korbert.corpus.cleaning.features import batches, measure_rows
from korbert.corpus.cleaning.filters import drop_reasons, too_short
from korbert.corpus.cleaning.frequent_lines import without_lines
from korbert.corpus.cleaning.hashing import HashArray
from korbert.corpus.cleaning.normalize import normalize_many
from korbert.corpus.cleaning.personal import mask
from korbert.corpus.cleaning.writing import write_documents
from korbert.corpus.corpus_settings import MIB, CleanSettings
from korbert.corpus.execution.parts import ROW_GROUP_ROWS, OutputPart, key_of, read_table, write_parquet
from korbert.corpus.execution.workers import Lost, Outcome, RecordUnit, Workers, local_threads, run_units
from korbert.corpus.readers import Chunk, SourceRow, chunks, count_records, rows
from korbert.errors import CorpusError
from korbert.messages import Message, argument
from korbert.records import File
from korbert.system import sha256_of, track

_VERSION = 4  # raise it when the same input gives different bytes
_LIBRARIES = ("numpy", "pyarrow", "duckdb", "mwparserfromhell")
_READ_SCHEMA = pa.schema(
    {"id": pa.string(), "source": pa.string(), "text": pa.large_string(), "reason": pa.string(), "detail": pa.string()}
    | {"place": pa.string(), "part": pa.int32(), "position": pa.int32()}
    | {"hash_high": pa.uint64(), "hash_low": pa.uint64()}
)
_MEASURE_ROWS = 1 << 13  # DuckDB holds whole row groups
_HIT_ROWS = 1 << 20

# A part that takes longer is halved, down to the record that hangs. About ten times what wikitext, the slowest kind,
# takes on a busy machine.
_SECONDS_PER_MIB = 30.0
_MIN_SECONDS = 60.0


class Screened(NamedTuple):
    """The result for a row: its clean text, and the reason to drop it with details; both are None for a row to keep."""

    text: str
    reason: str | None
    detail: str | None


def screen(
    rows: Sequence[SourceRow], settings: CleanSettings, index: NgramIndex | None
) -> tuple[list[Screened], Counter[str], HashArray]:
    """Normalizes each row, masks personal data, applies the filters, and looks for text of evaluation sets.

    Returns the results in the order of the rows; counts of masks by kind (`masked.email`) and of contaminated documents
    by evaluation set (`contaminated.NAME`), of those that pass the filters, with those that are kept without lines; and
    the hashes of all n-grams that these share with evaluation sets. An unreadable row keeps its raw text and its
    reason. Duplicates are looked for afterwards, over all parts.
    """
    normalized = normalize_many((row.text for row in rows if row.reason is None), settings.normalize)
    texts, mask_counts = mask(normalized, settings.personal)
    counts = Counter({f"masked.{kind}": number for kind, number in mask_counts.items()})
    readable: list[Screened] = []
    hits = [np.empty(0, np.uint64)]
    limits = settings.filters
    for batch, features in batches(texts, limits.repetition_min_words, limits.max_chars):
        reasons = drop_reasons(batch, features, limits)
        leaks = [None] * len(batch) if index is None else index.find(features)
        for text, reason, leak in zip(batch, reasons, leaks, strict=True):
            if reason is not None or leak is None:
                readable.append(Screened(text, *(reason or (None, None))))
                continue
            counts.update(f"contaminated.{name}" for name in leak.names)
            hits.append(leak.hashes)
            # Without the contaminated lines, if the settings say so and enough of the document is left.
            remaining_text = without_lines(text, leak.lines) if settings.decontamination.unit == "line" else ""
            if remaining_text and not too_short(remaining_text, limits):
                readable.append(Screened(remaining_text, None, None))
            else:
                readable.append(Screened(text, "contaminated", f"{', '.join(leak.names)}: {leak.shared}"))
    # The unreadable rows return to their places between the readable ones.
    results = iter(readable)
    screened = [next(results) if row.reason is None else Screened(row.text, row.reason, row.detail) for row in rows]
    return screened, counts, np.unique(np.concatenate(hits))


@dataclass(frozen=True)
class _ReadUnit(RecordUnit):
    """Work unit: one chunk of a source to one part of rows, with their measures for `deduplicate`.

    index: file of the index of evaluation sets; None without any.
    """

    part: OutputPart
    number: int
    chunk: Chunk
    settings: CleanSettings
    index: Path | None

    def count_records(self) -> int:
        return count_records(self.chunk)

    def result(
        self, source_rows: Sequence[SourceRow], screened: Sequence[Screened], counts: Counter[str], hits: HashArray
    ) -> "_Result":
        """What the part is made of: the rows, with the columns of _READ_SCHEMA, and their measures."""
        source = self.chunk.source.name
        counts[f"{source}.undecodable"] = sum(row.undecodable for row in source_rows)
        counts[f"{source}.readable"] = sum(row.reason is None for row in source_rows)
        pairs = zip(source_rows, screened, strict=True)
        hashes = [(0, 0) if row.reason else text_hash(result.text) for row, result in pairs]
        columns = {
            "id": [row.document_id(source) for row in source_rows],
            "source": pa.repeat(source, len(source_rows)),
            "text": [result.text for result in screened],
            "reason": [result.reason for result in screened],
            "detail": [result.detail for result in screened],
            "place": [row.place for row in source_rows],
            "part": np.full(len(source_rows), self.number, np.int32),
            "position": np.arange(self.first, self.first + len(source_rows), dtype=np.int32),
            "hash_high": [high for high, _ in hashes],
            "hash_low": [low for _, low in hashes],
        }
        table = pa.table(columns, _READ_SCHEMA)
        tables = {"read": table}
        tables |= measure_rows(table.filter(pc.is_null(table["reason"])), measures(self.settings.duplicates))
        if self.index is not None:
            tables["hits"] = pa.table({"hash": hits})
        return _Result(counts, tables)

    def finish(self, counts: dict[str, int], tables: Mapping[str, pa.Table]) -> dict[str, int]:
        """Writes the tables and the record of the part."""
        files = []
        for kind, table in tables.items():
            group_rows = {"read": ROW_GROUP_ROWS, "hits": _HIT_ROWS}.get(kind, _MEASURE_ROWS)
            path = self.part.scratch(kind)
            files.append(write_parquet(path, table.combine_chunks(), self.part.output, group_rows, scratch=True))
        return self.part.finish(files, counts | {f"{self.chunk.source.name}.bytes": self.chunk.size})


class _Result(NamedTuple):
    """The counts of a unit, and its tables by kind; without tables once the part is written."""

    counts: dict[str, int]
    tables: Mapping[str, pa.Table] = {}


def clean(
    settings: CleanSettings, sources: Mapping[str, Sequence[File]], output: Path, *, workers: int | Workers
) -> dict[str, int]:
    """Writes `output`/documents/part-*.parquet (id, source, text) and dropped/part-*.parquet (id, source, reason,
    detail, text). A dropped row without a readable id has a null id and the raw record as its text. If frequent lines
    are removed, frequent/part-00000.parquet (text, documents) lists them.

    sources: name of a source or evaluation set -> its files. Returns the numbers of rows read, kept and dropped, in
    total, by source (`kept.wiki`) and by reason (`dropped.too_short`), and further counts by kind (`masked.email`).
    Raises CorpusError if a file is missing or truncated, an id is not unique, or no document is left.
    """
    for name, _ in settings.patterns:
        files = sources.get(name, ())
        if not files:
            raise CorpusError(
                "{name!r}: no file: check its path in the recipe and {option}", name=name, option=argument("data")
            )
        if missing := next((path for path in files if not path.is_file()), None):
            raise CorpusError(
                "{missing}: no such file: check the path of {name!r} in the recipe and {option}",
                missing=missing,
                name=name,
                option=argument("data"),
            )
    evaluation = make_index(settings, sources) if settings.evaluation else None
    index = None if evaluation is None else evaluation.save(output / "work" / "evaluation.npz", output)

    # The three steps. A finished part of any of them is kept when the stage is resumed.
    parts, sums = _read_all(settings, sources, output, workers, index)
    _check_sources(settings, sources, parts, sums)
    removals = deduplicate(settings, parts, output, local_threads(workers))
    counts = write_documents(settings, parts, removals, output, workers)

    counts |= {name: sums[name] for name in sorted(sums) if name.startswith(("masked.", "contaminated."))}
    if evaluation is not None:
        hits = np.concatenate([read_table(part.scratch("hits"))["hash"].to_numpy() for part in parts])
        for name, numbers in evaluation.text_counts(np.unique(hits)).items():
            counts |= {f"evaluation.{name}.{kind}": number for kind, number in numbers.items()}
    if not counts["documents"]:
        reasons = ", ".join(f"{number:,} {name}" for name, number in counts.items() if name.startswith("dropped."))
        raise CorpusError(
            "{shown_files}: no document is left ({reasons}): see the [clean] settings",
            shown_files=_shown_files(sources),
            reasons=reasons,
        )
    return counts


def _check_sources(
    settings: CleanSettings, sources: Mapping[str, Sequence[File]], parts: Sequence[OutputPart], sums: dict[str, int]
) -> None:
    """Raises CorpusError if a source cannot be decoded, or has no document."""
    for source in settings.sources:
        undecodable, size = (sums.get(f"{source.name}.{name}", 0) for name in ("undecodable", "bytes"))
        if undecodable > source.max_undecodable * size:
            encoding_origin = Message("detected") if source.encoding == "auto" else Message("given")
            raise CorpusError(
                "source {source!r}: {undecodable:,} of {size:,} bytes cannot be decoded in the encoding that "
                "was {how}: set encoding of the source in the recipe, or max_undecodable, which drops those rows",
                source=source.name,
                undecodable=undecodable,
                size=size,
                how=encoding_origin,
            )
        if sums.get(f"{source.name}.readable"):
            continue
        faults: list[str] = []
        for part in parts:
            table = read_table(part.scratch("read"))
            faults += table["detail"].filter(pc.equal(table["source"], source.name))[:1].to_pylist()
        raise without_document(source.name, sources[source.name], faults)


def without_document(source: str, files: Sequence[File], faults: Sequence[str]) -> CorpusError:
    """The error for a source without a document. faults: details of its records; the first is shown."""
    hint = Message("its files hold no record: name others, or leave the source out")
    if faults:
        hint = Message(
            '{fault}: correct it, set id (id = "" takes the number of the line), text or kind of the source, or leave '
            "the source out",
            fault=faults[0],
        )
    return CorpusError(
        "{shown_files}: no document in source {source!r}: {hint}",
        shown_files=_shown_files({source: files}),
        source=source,
        hint=hint,
    )


def _shown_files(sources: Mapping[str, Sequence[File]]) -> str:
    """The first three files, for messages."""
    files = [str(path) for paths in sources.values() for path in paths]
    shown = ", ".join(files[:3])
    return Message("{files} and {count} more", files=shown, count=len(files) - 3) if len(files) > 3 else shown


def _read_all(
    settings: CleanSettings,
    sources: Mapping[str, Sequence[File]],
    output: Path,
    workers: int | Workers,
    index: Path | None,
) -> tuple[list[OutputPart], Counter[str]]:
    """All parts of the first step, in order, and the sums of their counts."""
    parts: list[OutputPart] = []
    sums: Counter[str] = Counter()
    index_hash = "" if index is None else sha256_of(index)

    def pending() -> Iterator[_ReadUnit]:
        """Cuts and hashes every chunk, and yields those whose part is not finished."""
        for source in settings.sources:
            for chunk in chunks(source, sources[source.name], settings.part_bytes, settings.filters.max_record_bytes):
                key = key_of(settings, _VERSION, source.name, index_hash, *chunk.content, libraries=_LIBRARIES)
                part = OutputPart(output, "read", f"part-{len(parts):05d}", key)
                parts.append(part)
                if (counts := part.finished()) is None:
                    yield _ReadUnit(part, len(parts) - 1, chunk, settings, index, size=chunk.size)
                else:
                    sums.update(counts)
                    advance(chunk.size)

    with track("clean: read", total=None, unit="bytes") as advance:
        for outcome in run_units(
            _read,
            pending(),
            workers=workers,
            deadline=lambda unit: max(_MIN_SECONDS, unit.size / MIB * _SECONDS_PER_MIB),
            split=_ReadUnit.halves,
        ):
            counts = _merge_pieces(outcome) if outcome.halved else outcome.results[0].counts
            sums.update(counts)
            advance(outcome.unit.size)
    return parts, sums


def _read(unit: _ReadUnit) -> _Result:
    """Writes the part of a chunk; returns the tables of a piece."""
    source_rows = list(rows(unit.chunk, unit.first, unit.stop))
    index = None if unit.index is None else load_index(unit.index)
    result = unit.result(source_rows, *screen(source_rows, unit.settings, index))
    return result if unit.is_piece else _Result(unit.finish(*result))


def _merge_pieces(outcome: Outcome[_ReadUnit, _Result]) -> dict[str, int]:
    """Writes the part of a chunk that was halved, in the order of the file."""
    results = []
    for piece in outcome.pieces:
        if isinstance(piece, Lost):  # a record whose worker crashed or hung is dropped
            raw_rows = list(rows(piece.unit.chunk, piece.unit.first, piece.unit.stop, parse_rows=False))
            screened = [Screened(row.text, f"clean_{piece.reason}", f"{row.place}: {piece.detail}") for row in raw_rows]
            piece = piece.unit.result(raw_rows, screened, Counter(), np.empty(0, np.uint64))
        results.append(piece)
    tables = {kind: pa.concat_tables(result.tables[kind] for result in results) for kind in results[0].tables}
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result.counts)
    return outcome.unit.finish(counts, tables)
