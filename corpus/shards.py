"""Morphemes -> ids and boundaries in Arrow stream files, which `datasets.Dataset.from_file` maps in place.

Only the different forms of a part go through the tokenizer; the rest is gathering in arrays, no Python per morpheme.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpus.execution.parts import (
    Counts,
    Part,
    keep_only,
    key_of,
    named_in_errors,
    unfinished,
    write_parquet,
    written_aside,
)
from corpus.execution.workers import Workers, run_units
from corpus.morphemes import Ints, Morphemes, morpheme_files, read_morphemes
from corpus.settings import ShardSettings
from korbert.durable import sha256_of
from korbert.errors import CorpusError
from korbert.progress import track
from korbert.tokenization.encoding import CONTINUATION, EOJEOL, MORPHEME, SENTENCE
from korbert.tokenization.tokenizer import Tokenizer

__all__ = ["SCHEMA", "shard"]

Ids = NDArray[np.int32]

_VERSION = 1  # raise it when the same input gives other bytes
_LIBRARIES = ("numpy", "pyarrow", "duckdb", "sentencepiece")

# One row a document, without special tokens. boundaries: the level of korbert.tokenization.encoding at each piece.
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("input_ids", pa.list_(pa.int32())),
        ("boundaries", pa.list_(pa.uint8())),
    ]
)
_COUNTED = ("documents", "morphemes", "pieces")
_FOLDERS = {False: "train", True: "heldout"}

_tokenizer: Tokenizer | None = None  # one in each worker process


@dataclass(frozen=True)
class _Unit:
    """Work unit: some parts of morphemes to one shard of each kind."""

    part: Part
    morphemes: tuple[Path, ...]
    seed: int
    heldout_share: float

    @property
    def piece_counts(self) -> Path:
        return self.part.work / f"{self.part.name}.npy"


def shard(
    morphemes: Path,
    tokenizer: Path,
    output: Path,
    *,
    seed: int,
    heldout_share: float,
    workers: int | Workers,
    settings: ShardSettings | None = None,
) -> Counts:
    """Writes `output`/train/part-*.arrow and heldout/part-*.arrow (SCHEMA), and pieces.parquet: id, piece, count in
    train, one row an entry of the vocabulary.

    morphemes: the folder of parts that `analyze` wrote; tokenizer: a tokenizer's folder. A shard without documents is
    not written. Returns documents, morphemes and pieces, in all and held out (`heldout_documents`).
    """
    loaded = Tokenizer.load(tokenizer)
    units = list(_units(settings or ShardSettings(), morphemes, loaded.digest, output, seed, heldout_share))
    pending, totals = unfinished(units)
    with track("shard", total=len(units), unit="parts") as advance:
        advance(len(units) - len(pending))
        for outcome in run_units(_shard, pending, workers=workers, initializer=_load_tokenizer, initargs=(tokenizer,)):
            totals.update(outcome.results[0])
            advance(1)
    if totals["documents"] == totals["heldout_documents"]:
        raise CorpusError(f"{morphemes}: all documents are held out: bring more text or hold out less")
    for folder in _FOLDERS.values():
        (output / folder).mkdir(exist_ok=True)
        keep_only(output / folder, [f"{unit.part.name}.arrow" for unit in units])
    _write_pieces(units, loaded, output)
    return {f"{kind}{name}": totals[f"{kind}{name}"] for kind in ("", "heldout_") for name in _COUNTED}


def _units(
    settings: ShardSettings, morphemes: Path, digest: str, output: Path, seed: int, heldout_share: float
) -> Iterator[_Unit]:
    for number, paths in enumerate(_groups(morpheme_files(morphemes), settings.part_bytes)):
        made_from = [sha256_of(path) for path in paths]
        key = key_of(settings, _VERSION, digest, seed, str(heldout_share), *made_from, libraries=_LIBRARIES)
        yield _Unit(Part(output, "shard", f"part-{number:05d}", key), paths, seed, heldout_share)


def _groups(paths: Sequence[Path], part_bytes: int) -> Iterator[tuple[Path, ...]]:
    """Neighbouring files, a group ending as soon as it holds `part_bytes`."""
    group: list[Path] = []
    for path in paths:
        group.append(path)
        if sum(one.stat().st_size for one in group) >= part_bytes:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)


def _load_tokenizer(folder: Path) -> None:
    global _tokenizer
    _tokenizer = Tokenizer.load(folder)


def _shard(unit: _Unit) -> Counts:
    if _tokenizer is None:
        raise AssertionError("the worker was started without its tokenizer")
    batches: dict[bool, list[pa.RecordBatch]] = {False: [], True: []}
    counts: Counter[str] = Counter()
    piece_counts = np.zeros(_tokenizer.vocab_size, np.int64)
    for path in unit.morphemes:
        morphemes = read_morphemes(path, seed=unit.seed, heldout_share=unit.heldout_share)
        batch = _batch(morphemes, _tokenizer)
        counts["morphemes"] += len(morphemes.forms.codes)
        counts["heldout_morphemes"] += int(np.diff(morphemes.bounds)[morphemes.heldout].sum())
        for heldout, held in batches.items():
            part = batch.filter(pa.array(morphemes.heldout == heldout))
            ids = part["input_ids"].flatten().to_numpy()
            sizes = {"documents": part.num_rows, "pieces": len(ids)}
            counts.update(sizes)
            if heldout:
                counts.update({f"heldout_{name}": number for name, number in sizes.items()})
            else:
                piece_counts += np.bincount(ids, minlength=len(piece_counts))
            if part.num_rows:
                held.append(part)
    return unit.part.finish([*_write_streams(unit, batches), _save(unit, piece_counts)], counts)


def _write_streams(unit: _Unit, batches: dict[bool, list[pa.RecordBatch]]) -> Iterator[Path]:
    for heldout, held in batches.items():
        path = unit.part.output / _FOLDERS[heldout] / f"{unit.part.name}.arrow"
        if held:
            yield written_aside(path, partial(_write_stream, held), unit.part.output)
        else:
            path.unlink(missing_ok=True)


def _write_stream(batches: Sequence[pa.RecordBatch], path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _save(unit: _Unit, counts: Ints) -> Path:
    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.save(file, counts)

    return written_aside(unit.piece_counts, write, unit.part.output)


def _batch(morphemes: Morphemes, tokenizer: Tokenizer) -> pa.RecordBatch:
    """The documents with the columns of SCHEMA."""
    ids, lengths = _ids(morphemes, tokenizer)
    levels = np.full(len(lengths), MORPHEME, np.uint8)  # (M,)
    levels[morphemes.begins_eojeol] = EOJEOL
    levels[morphemes.begins_sentence] = SENTENCE
    ends = np.concatenate([[0], np.cumsum(lengths)])  # (M + 1,), the first piece of each morpheme
    boundaries = np.full(len(ids), CONTINUATION, np.uint8)
    boundaries[ends[:-1]] = levels
    bounds = pa.array(ends[morphemes.bounds], pa.int32())
    columns = [
        morphemes.ids,
        morphemes.sources,
        pa.ListArray.from_arrays(bounds, pa.array(ids)),
        pa.ListArray.from_arrays(bounds, pa.array(boundaries)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _ids(morphemes: Morphemes, tokenizer: Tokenizer) -> tuple[Ids, Ints]:
    """The ids of all morphemes in a row, (P,) int32, and how many each has, (M,) int64, at least 1."""
    key = morphemes.forms.codes * 2 + morphemes.begins_eojeol
    counts = np.bincount(key)
    used = np.flatnonzero(counts)  # (K,), the different forms, those that begin an eojeol apart
    place = np.cumsum(counts > 0) - 1
    kind = place[key]  # (M,)
    names = morphemes.forms.names.take(pa.array(used // 2)).to_pylist()
    pieces = tokenizer.encode_forms(names, (used % 2).astype(bool).tolist())
    length = np.fromiter(map(len, pieces), np.int64, len(pieces))  # (K,)
    flat = np.fromiter(chain.from_iterable(pieces), np.int32, int(length.sum()))
    first = np.cumsum(length) - length
    lengths = length[kind]  # (M,)
    begins = np.cumsum(lengths) - lengths
    return flat[np.repeat(first[kind] - begins, lengths) + np.arange(int(lengths.sum()))], lengths


def _write_pieces(units: Sequence[_Unit], tokenizer: Tokenizer, output: Path) -> None:
    counts = np.zeros(tokenizer.vocab_size, np.int64)
    for unit in units:
        with named_in_errors(unit.piece_counts):
            counts += np.load(unit.piece_counts)
    ids = np.arange(tokenizer.vocab_size, dtype=np.int32)
    table = pa.table({"id": ids, "piece": tokenizer.tokens(ids.tolist()), "count": counts})
    write_parquet(output / "pieces.parquet", table, output)
