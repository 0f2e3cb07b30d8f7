"""Morpheme counts of the training documents, and the coverage of held-out documents by a tokenizer."""

import heapq
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from korbert.corpus.execution.database import connect, result_tables, write_query
from korbert.corpus.execution.parts import OutputPart, key_of, part_files, write_parquet
from korbert.corpus.execution.workers import Workers, local_threads, run_parts
from korbert.corpus.morphemes import Codes, read_morphemes
from korbert.errors import CorpusError
from korbert.system import sha256_of
from korbert.tokenization import FIRST_BYTE, FIRST_PIECE, Tokenizer, VocabularySettings, is_form, marked

_VERSION = 1  # raise it when the same input gives different bytes
_LIBRARIES = ("numpy", "pyarrow")
_RARELY = 10  # entries with fewer uses count as "rarely" used
_MOST_SPLIT = 100  # morphemes listed by coverage

_NUMBERS = dict.fromkeys(("count", "initial", "documents"), pa.int64())
_SCHEMA = pa.schema({"form": pa.string(), "tag": pa.string()} | _NUMBERS)
_MERGED_COUNTS = """
    SELECT form, tag, sum(count)::BIGINT AS count, sum(initial)::BIGINT AS initial, sum(documents)::BIGINT AS documents
    FROM parts GROUP BY form, tag ORDER BY count DESC, form, tag
"""
_FORM_COUNTS = """
    SELECT form, sum(count)::BIGINT AS count, sum(initial)::BIGINT AS initial FROM counts
    WHERE documents >= $min_documents GROUP BY form ORDER BY form
"""
# Rows without a source are those of all sources.
_HELDOUT = """
    SELECT source, form, tag, sum(initial)::BIGINT AS initial, sum(count)::BIGINT AS count
    FROM parts GROUP BY GROUPING SETS ((source, form, tag), (form, tag)) ORDER BY source, form, tag
"""

_Split = tuple[int, str, str, int, int]  # minus the pieces beyond the first, form, tag, count, pieces


def count(morphemes: Path, output: Path, *, seed: int, heldout_share: float, workers: int | Workers) -> dict[str, int]:
    """Writes `output`/counts.parquet: form, tag, count, initial (occurrences that begin an eojeol), documents (that
    contain it); the most frequent first, ties by form and tag. Held-out documents are not counted.

    morphemes: the folder of parts that `analyze` wrote. Returns the numbers of documents, morphemes, eojeols, and
    distinct pairs of form and tag.
    """
    paths, totals = _count_parts(morphemes, output, seed, heldout_share, workers, heldout=False)
    if not totals.get("morphemes"):
        raise CorpusError(
            "{morphemes}: every morpheme is in a held-out document: bring more text or hold out less",
            morphemes=morphemes,
        )
    with connect(output, local_threads(workers), parts=paths) as database:
        distinct = write_query(database, _MERGED_COUNTS, _SCHEMA, output / "counts.parquet", output)
    return {name: totals[name] for name in ("documents", "morphemes", "eojeols")} | {"distinct": distinct}


def form_counts(counts: Path, settings: VocabularySettings, min_documents: int = 1) -> Iterator[tuple[str, int]]:
    """(lookup key of the tokenizer, count) pairs to learn pieces from, in order of the forms.

    counts: the file that `count` wrote. If `settings.mark` distinguishes the first morpheme of an eojeol, a form has
    two keys. min_documents: a form and tag in fewer documents is left out.
    """
    with connect(None, threads=1, counts=[counts]) as database:
        for table in result_tables(database, _FORM_COUNTS, min_documents=min_documents):
            for row in table.to_pylist():
                keys = Counter({marked(row["form"], True, settings.mark): row["initial"]})
                keys[marked(row["form"], False, settings.mark)] += row["count"] - row["initial"]
                yield from ((key, number) for key, number in keys.items() if number)


def frequent_cut_forms(
    counts: Path, tokenizer: Tokenizer, number: int, *, min_count: int = 1, min_documents: int = 1
) -> list[str]:
    """Returns at most `number` forms: those that the tokenizer most often cuts into several pieces; ties by form.

    Forms longer than the tokenizer's maximum piece length, forms with a space, and forms cut in fewer
    than `min_count` occurrences are left out. counts, min_documents: as in form_counts.
    """
    longest = tokenizer.settings.max_piece_chars
    most_cut: list[tuple[int, str]] = []
    with connect(None, threads=1, counts=[counts]) as database:
        for table in result_tables(database, _FORM_COUNTS, min_documents=min_documents):
            forms = table["form"].to_pylist()
            initial = table["initial"].to_numpy()
            cut_counts = np.zeros(len(forms), np.int64)  # occurrences
            for begins, uses in ((True, initial), (False, table["count"].to_numpy() - initial)):
                cut_counts += uses * [len(ids) > 1 for ids in tokenizer.encode_forms(forms, [begins] * len(forms))]
            rows = zip((-cut_counts).tolist(), forms, strict=True)
            eligible = (row for row in rows if -row[0] >= min_count and len(row[1]) <= longest and is_form(row[1]))
            most_cut = heapq.nsmallest(number, [*most_cut, *eligible])
    return [form for _, form in most_cut]


def coverage(
    morphemes: Path, tokenizer: Tokenizer, output: Path, *, seed: int, heldout_share: float, workers: int | Workers
) -> dict[str, Any]:
    """Returns the content of `coverage.json`, which docs/formats.md describes: figures of all held-out documents and by
    source, and the morphemes with most pieces beyond their first. Shares are 0 if nothing is held out.

    output: for scratch files.
    """
    paths, totals = _count_parts(morphemes, output, seed, heldout_share, workers, heldout=True)
    documents = {name.partition(".")[2]: number for name, number in totals.items() if "." in name}
    sums_by_source: dict[str | None, Counter[str]] = {source: Counter() for source in (None, *sorted(documents))}
    splits_by_source: dict[str | None, list[_Split]] = {source: [] for source in sums_by_source}
    with connect(output, local_threads(workers), parts=paths) as database:
        for table in result_tables(database, _HELDOUT):
            for source in table["source"].unique().to_pylist():
                of_source = pc.is_null(table["source"]) if source is None else pc.equal(table["source"], source)
                split_sums, source_splits = _measure_splits(table.filter(of_source), tokenizer)
                sums_by_source[source].update(split_sums)
                splits_by_source[source] = sorted([*splits_by_source[source], *source_splits])[:_MOST_SPLIT]
    columns = ("form", "tag", "count", "pieces")
    return {
        "all": _figures(sums_by_source[None], sum(documents.values())),
        "by_source": {source: _figures(sums_by_source[source], number) for source, number in sorted(documents.items())},
        "most_split": {
            source or "all": [dict(zip(columns, row[1:], strict=True)) for row in rows]
            for source, rows in splits_by_source.items()
        },
    }


def usage(counts: Path, tokenizer: Tokenizer) -> dict[str, int]:
    """Numbers of entries for text, bytes left out: all, those that the counts never use, and those used fewer than ten
    times.

    counts: the file that `count` wrote.
    """
    use_counts = np.zeros(tokenizer.vocab_size, np.int64)
    for key, number in form_counts(counts, tokenizer.settings):
        np.add.at(use_counts, list(tokenizer.ids_of(key)), number)
    use_counts = use_counts[FIRST_PIECE:]
    return {
        "entries": len(use_counts),
        "never": int((use_counts == 0).sum()),
        "rarely": int(((use_counts > 0) & (use_counts < _RARELY)).sum()),
    }


def _count_parts(
    morphemes: Path, output: Path, seed: int, heldout_share: float, workers: int | Workers, *, heldout: bool
) -> tuple[list[Path], Counter[str]]:
    """Writes the partial counts of each part of morphemes. Returns their files and the sums over all parts."""
    folder = "coverage" if heldout else "counts"
    work = {}
    for path in part_files(morphemes, made_by="analyze"):
        key = key_of(None, _VERSION, sha256_of(path), seed, str(heldout_share), heldout, libraries=_LIBRARIES)
        work[OutputPart(output, folder, path.stem, key)] = path, seed, heldout_share, heldout
    step = "coverage" if heldout else "count"
    totals = run_parts(step, _count_part, work, workers=workers)
    return [part.scratch() for part in work], totals


def _count_part(part: OutputPart, path: Path, seed: int, heldout_share: float, heldout: bool) -> dict[str, int]:
    """Writes form, tag, count, initial and documents of a part, unordered; for held-out documents also by source."""
    morphemes = read_morphemes(path, seed=seed, heldout_share=heldout_share)
    is_counted = morphemes.heldout == heldout  # (D,)
    sources = Codes.of(morphemes.sources)
    lengths = np.diff(morphemes.bounds)
    is_chosen = np.repeat(is_counted, lengths)  # (M,), of which C are True
    document = np.repeat(np.arange(len(lengths)), lengths)[is_chosen]  # (C,)
    # Each morpheme gets a key from form, tag and source; a kind is a distinct key.
    num_forms = max(1, len(morphemes.forms.names))
    num_tags = max(1, len(morphemes.tags.names))
    key = (morphemes.forms.codes * num_tags + morphemes.tags.codes)[is_chosen]
    if heldout:
        key += sources.codes[document] * (num_forms * num_tags)
    kinds, kind = np.unique(key, return_inverse=True)  # (K,), (C,)
    holders = np.unique(document * max(1, len(kinds)) + kind) % max(1, len(kinds))
    columns = {
        "form": morphemes.forms.names.take(pa.array(kinds // num_tags % num_forms)),
        "tag": morphemes.tags.names.take(pa.array(kinds % num_tags)),
        "count": np.bincount(kind, minlength=len(kinds)),
        "initial": np.bincount(kind[morphemes.begins_eojeol[is_chosen]], minlength=len(kinds)),
        "documents": np.bincount(holders, minlength=len(kinds)),
    }
    if heldout:
        columns["source"] = sources.names.take(pa.array(kinds // (num_forms * num_tags)))
    file = write_parquet(part.scratch(), pa.table(columns), part.output, scratch=True)
    counts = {"morphemes": len(document), "eojeols": int(columns["initial"].sum()), "documents": int(is_counted.sum())}
    by_source = np.bincount(sources.codes[is_counted], minlength=len(sources.names)).tolist()
    named = zip(sources.names.to_pylist(), by_source, strict=True)
    return part.finish([file], {f"documents.{name}": number for name, number in named if number} | counts)


def _measure_splits(table: pa.Table, tokenizer: Tokenizer) -> tuple[Counter[str], list[_Split]]:
    """Sums over K kinds (form and tag) of held-out morphemes, and the kinds with most pieces beyond their first over
    all occurrences, in descending order."""
    forms = table["form"].to_pylist()
    tags = table["tag"].to_pylist()
    initial = table["initial"].to_numpy()
    # (K, 2) arrays, for occurrences that begin an eojeol and those that do not.
    count = np.stack([initial, table["count"].to_numpy() - initial], axis=1)
    ids = [tokenizer.encode_forms(forms, [begins] * len(forms)) for begins in (True, False)]
    pieces = np.array([[len(piece_ids) for piece_ids in column] for column in ids], np.int64).T  # of one occurrence
    in_bytes = [[sum(FIRST_BYTE <= id < FIRST_PIECE for id in piece_ids) for piece_ids in column] for column in ids]
    bytes_ = np.array(in_bytes, np.int64).T
    sums = Counter(
        morphemes=int(count.sum()),
        eojeols=int(count[:, 0].sum()),
        pieces=int((count * pieces).sum()),
        whole=int(count[(pieces == 1) & (bytes_ == 0)].sum()),
        bytes=int((count * bytes_).sum()),
    )
    cost = (count * (pieces - 1)).sum(axis=1)
    usual_pieces = np.where(count[:, 0] > count[:, 1], pieces[:, 0], pieces[:, 1])
    totals = count.sum(axis=1)
    rows = [row for row in np.argsort(-cost, kind="stable")[:_MOST_SPLIT].tolist() if cost[row]]
    return sums, [(-int(cost[row]), forms[row], tags[row], int(totals[row]), int(usual_pieces[row])) for row in rows]


def _figures(sums: Counter[str], documents: int) -> dict[str, int | float]:
    """The figures of one source, or of all; see `coverage`."""
    morphemes = max(1, sums["morphemes"])
    return {
        "documents": documents,
        **{name: sums[name] for name in ("morphemes", "eojeols", "pieces")},
        "whole_morpheme_share": sums["whole"] / morphemes,
        "pieces_per_morpheme": sums["pieces"] / morphemes,
        "pieces_per_eojeol": sums["pieces"] / max(1, sums["eojeols"]),
        "byte_share": sums["bytes"] / max(1, sums["pieces"]),
    }
