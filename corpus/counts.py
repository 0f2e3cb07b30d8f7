"""How often each morpheme occurs, and how well a tokenizer covers text that nothing was learned from."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpus.execution.database import connect, same_size_batches
from corpus.execution.parts import Counts, Part, key_of, unfinished, write_parquet, write_tables
from corpus.execution.workers import Workers, local_threads, run_units
from corpus.morphemes import Bools, Codes, Ints, Morphemes, morpheme_files, read_morphemes
from korbert.durable import sha256_of
from korbert.errors import CorpusError
from korbert.progress import track
from korbert.tokenization.settings import VocabularySettings
from korbert.tokenization.vocabulary import FIRST_BYTE, FIRST_PIECE, marked

if TYPE_CHECKING:
    from korbert.tokenization.tokenizer import Tokenizer

__all__ = ["count", "coverage", "form_counts", "usage"]

_VERSION = 1  # raise it when the same input gives other bytes
_LIBRARIES = ("numpy", "pyarrow", "duckdb", "sentencepiece")
_RARELY = 10  # times
_MOST_SPLIT = 100  # morphemes listed by coverage

_SCHEMA = pa.schema(
    [
        ("form", pa.string()),
        ("tag", pa.string()),
        ("count", pa.int64()),
        ("initial", pa.int64()),
        ("documents", pa.int64()),
    ]
)
_MERGED_COUNTS = """
    SELECT form, tag, sum(count)::BIGINT AS count, sum(initial)::BIGINT AS initial, sum(documents)::BIGINT AS documents
    FROM parts GROUP BY form, tag ORDER BY count DESC, form, tag
"""
_FORM_COUNTS = """
    SELECT form, sum(count)::BIGINT AS count, sum(initial)::BIGINT AS initial FROM counts
    WHERE documents >= $least GROUP BY form ORDER BY form
"""
_HELDOUT = """
    SELECT form, tag, sum(initial)::BIGINT AS initial, sum(count)::BIGINT AS count
    FROM parts GROUP BY form, tag ORDER BY form, tag
"""
_HELDOUT_BY_SOURCE = """
    SELECT source, form, tag, sum(initial)::BIGINT AS initial, sum(count)::BIGINT AS count
    FROM parts GROUP BY source, form, tag ORDER BY source, form, tag
"""

_Split = tuple[int, str, str, int, int]  # minus the pieces beyond the first, form, tag, count, pieces


@dataclass(frozen=True)
class _Unit:
    """Work unit: one part of morphemes to its partial counts."""

    part: Part
    morphemes: Path
    seed: int
    heldout_share: float
    heldout: bool

    @property
    def path(self) -> Path:
        return self.part.work / f"{self.part.name}.parquet"


def count(morphemes: Path, output: Path, *, seed: int, heldout_share: float, workers: int | Workers) -> Counts:
    """Writes `output`/counts.parquet: form, tag, count, initial (how many of them begin an eojeol), documents (how many
    hold it); the most frequent first, ties by form and tag. Documents that are held out are not counted.

    morphemes: the folder of parts that `analyze` wrote. Returns documents, morphemes, eojeols, and distinct form/tag
    pairs.
    """
    units = _units(morphemes, output, seed, heldout_share, heldout=False)
    totals = _run("count", units, workers)
    if not totals.get("morphemes"):
        raise CorpusError(f"{morphemes}: every morpheme is in a held-out document: bring more text or hold out less")
    with connect(output, local_threads(workers), parts=[unit.path for unit in units]) as database:
        reader = database.sql(_MERGED_COUNTS).to_arrow_reader()
        distinct = write_tables(output / "counts.parquet", _SCHEMA, same_size_batches(reader), output)
    return {name: totals[name] for name in ("documents", "morphemes", "eojeols")} | {"distinct": distinct}


def form_counts(counts: Path, settings: VocabularySettings, min_documents: int = 1) -> Iterator[tuple[str, int]]:
    """(what the tokenizer looks up, how often) for learning pieces, one pair after the other, in order of the forms.

    counts: what `count` wrote. A form has two pairs where `settings.mark` tells the first morpheme of an eojeol from
    the others. min_documents: a form and tag found in fewer documents is left out.
    """
    with connect(None, threads=1, counts=[counts]) as database:
        reader = database.sql(_FORM_COUNTS, params={"least": min_documents}).to_arrow_reader()
        for table in same_size_batches(reader):
            for row in table.to_pylist():
                form, initial, inner = row["form"], row["initial"], row["count"] - row["initial"]
                keys = marked(form, True, settings.mark), marked(form, False, settings.mark)
                if keys[0] == keys[1]:
                    yield keys[0], row["count"]
                else:
                    yield from ((key, number) for key, number in zip(keys, (initial, inner), strict=True) if number)


def coverage(
    morphemes: Path, tokenizer: "Tokenizer", output: Path, *, seed: int, heldout_share: float, workers: int | Workers
) -> dict[str, Any]:
    """What `coverage.json` holds, all of it about held-out documents.

    {"all": M, "by_source": {source: M}, "most_split": {"all", source: [{form, tag, count, pieces}]}}. M has the numbers
    of documents, morphemes, eojeols and pieces, whole_morpheme_share (of morphemes that are one piece),
    pieces_per_morpheme, pieces_per_eojeol and byte_share (of pieces that stand for a byte); shares are 0 where nothing
    is held out. most_split: the morphemes that cost most pieces beyond their first. output: for scratch files.
    """
    units = _units(morphemes, output, seed, heldout_share, heldout=True)
    totals = _run("coverage", units, workers)
    documents = {name.partition(".")[2]: number for name, number in totals.items() if "." in name}
    by_source: dict[str, Counter[str]] = {source: Counter() for source in sorted(documents)}
    split: dict[str, list[_Split]] = {name: [] for name in ("all", *by_source)}
    with connect(output, local_threads(workers), parts=[unit.path for unit in units]) as database:
        for table in same_size_batches(database.sql(_HELDOUT_BY_SOURCE).to_arrow_reader()):
            for source in table["source"].unique().to_pylist():
                kinds = _Kinds.of(table.filter(pc.equal(table["source"], source)), tokenizer)
                by_source[source].update(kinds.sums())
                split[source] = sorted([*split[source], *kinds.most_split()])[:_MOST_SPLIT]
        for table in same_size_batches(database.sql(_HELDOUT).to_arrow_reader()):
            split["all"] = sorted([*split["all"], *_Kinds.of(table, tokenizer).most_split()])[:_MOST_SPLIT]
    everything = sum(by_source.values(), start=Counter[str]())
    return {
        "all": _figures(everything, sum(documents.values())),
        "by_source": {source: _figures(sums, documents[source]) for source, sums in by_source.items()},
        "most_split": {
            name: [
                {"form": form, "tag": tag, "count": number, "pieces": pieces} for _, form, tag, number, pieces in rows
            ]
            for name, rows in split.items()
        },
    }


def usage(counts: Path, tokenizer: "Tokenizer") -> dict[str, int]:
    """How many entries stand for text (bytes not counted), and how many of them what was counted uses never and rarely.

    counts: what `count` wrote. Rarely is less than ten times.
    """
    used = np.zeros(tokenizer.vocab_size, np.int64)
    for key, number in form_counts(counts, tokenizer.settings):
        np.add.at(used, list(tokenizer.ids_of(key)), number)
    used = used[FIRST_PIECE:]
    return {"entries": len(used), "never": int((used == 0).sum()), "rarely": int(((used > 0) & (used < _RARELY)).sum())}


def _units(morphemes: Path, output: Path, seed: int, heldout_share: float, heldout: bool) -> list[_Unit]:
    step = "coverage" if heldout else "counts"
    units = []
    for path in morpheme_files(morphemes):
        key = key_of(None, _VERSION, sha256_of(path), seed, str(heldout_share), heldout, libraries=_LIBRARIES)
        units.append(_Unit(Part(output, step, path.stem, key), path, seed, heldout_share, heldout))
    return units


def _run(description: str, units: Sequence[_Unit], workers: int | Workers) -> Counter[str]:
    """The sums of what the units counted; those done before are taken as they are."""
    pending, totals = unfinished(units)
    with track(description, total=len(units), unit="parts") as advance:
        advance(len(units) - len(pending))
        for outcome in run_units(_count_part, pending, workers=workers):
            totals.update(outcome.results[0])
            advance(1)
    return totals


def _count_part(unit: _Unit) -> Counts:
    morphemes = read_morphemes(unit.morphemes, seed=unit.seed, heldout_share=unit.heldout_share)
    wanted = morphemes.heldout == unit.heldout  # (D,)
    sources = Codes.of(morphemes.sources)
    by_source = np.bincount(sources.codes[wanted], minlength=len(sources.names)).tolist()
    counts = {f"documents.{name}": number for name, number in zip(sources.names.to_pylist(), by_source, strict=True)}
    table = _partial_counts(morphemes, wanted, sources if unit.heldout else None)
    path = write_parquet(unit.path, table, unit.part.output, scratch=True)
    sums = {"morphemes": pc.sum(table["count"]).as_py() or 0, "eojeols": pc.sum(table["initial"]).as_py() or 0}
    counts = {name: number for name, number in counts.items() if number} | {"documents": int(wanted.sum())}
    return unit.part.finish([path], counts | sums)


def _partial_counts(morphemes: Morphemes, wanted: Bools, sources: Codes | None) -> pa.Table:
    """form, tag, count, initial, documents of the wanted documents, and source where asked for, in no order."""
    lengths = np.diff(morphemes.bounds)
    chosen = np.repeat(wanted, lengths)  # (M,), of which C are True
    document = np.repeat(np.arange(len(lengths)), lengths)[chosen]  # (C,)
    num_forms, num_tags = len(morphemes.forms.names), max(1, len(morphemes.tags.names))
    key = (morphemes.forms.codes * num_tags + morphemes.tags.codes)[chosen]
    if sources is not None:
        key += sources.codes[document] * (num_forms * num_tags)
    kinds, kind = np.unique(key, return_inverse=True)  # (K,), (C,)
    holders = np.unique(document * max(1, len(kinds)) + kind) % max(1, len(kinds))
    columns = {
        "form": morphemes.forms.names.take(pa.array(kinds // num_tags % max(1, num_forms))),
        "tag": morphemes.tags.names.take(pa.array(kinds % num_tags)),
        "count": np.bincount(kind, minlength=len(kinds)),
        "initial": np.bincount(kind[morphemes.begins_eojeol[chosen]], minlength=len(kinds)),
        "documents": np.bincount(holders, minlength=len(kinds)),
    }
    if sources is not None:
        columns["source"] = sources.names.take(pa.array(kinds // max(1, num_forms * num_tags)))
    return pa.table(columns)


@dataclass(frozen=True)
class _Kinds:
    """K kinds (form and tag) of held-out morphemes with the pieces that the tokenizer makes of each.

    Columns of (K, 2) arrays: where it begins an eojeol, where not. count: how often; pieces, in_bytes: of one of them.
    """

    forms: list[str]
    tags: list[str]
    count: Ints
    pieces: Ints
    in_bytes: Ints

    @classmethod
    def of(cls, table: pa.Table, tokenizer: "Tokenizer") -> "_Kinds":
        forms, initial = table["form"].to_pylist(), table["initial"].to_numpy()
        ids = [tokenizer.encode_forms(forms, [begins] * len(forms)) for begins in (True, False)]
        in_bytes = [[sum(FIRST_BYTE <= piece < FIRST_PIECE for piece in one) for one in column] for column in ids]
        return cls(
            forms,
            table["tag"].to_pylist(),
            np.stack([initial, table["count"].to_numpy() - initial], axis=1),
            np.array([[len(one) for one in column] for column in ids], np.int64).T,
            np.array(in_bytes, np.int64).T,
        )

    def sums(self) -> Counter[str]:
        whole = (self.pieces == 1) & (self.in_bytes == 0)
        return Counter(
            morphemes=int(self.count.sum()),
            eojeols=int(self.count[:, 0].sum()),
            pieces=int((self.count * self.pieces).sum()),
            whole=int(self.count[whole].sum()),
            bytes=int((self.count * self.in_bytes).sum()),
        )

    def most_split(self) -> list[_Split]:
        """The kinds that cost most pieces beyond their first, those first."""
        cost = (self.count * (self.pieces - 1)).sum(axis=1)
        usual = np.where(self.count[:, 0] > self.count[:, 1], self.pieces[:, 0], self.pieces[:, 1])
        totals = self.count.sum(axis=1)
        rows = np.argsort(-cost, kind="stable")[:_MOST_SPLIT].tolist()
        return [
            (-int(cost[row]), self.forms[row], self.tags[row], int(totals[row]), int(usual[row]))
            for row in rows
            if cost[row]
        ]


def _figures(sums: Counter[str], documents: int) -> dict[str, int | float]:
    """The measures of one source, or of all; see `coverage`."""

    def share(part: str, whole: str) -> float:
        return sums[part] / sums[whole] if sums[whole] else 0.0

    return {
        "documents": documents,
        **{name: sums[name] for name in ("morphemes", "eojeols", "pieces")},
        "whole_morpheme_share": share("whole", "morphemes"),
        "pieces_per_morpheme": share("pieces", "morphemes"),
        "pieces_per_eojeol": share("pieces", "eojeols"),
        "byte_share": share("bytes", "pieces"),
    }
