"""Morphemes -> ids and boundaries in Arrow stream files, which `datasets.Dataset.from_file` maps in place.

Only the distinct forms of a part go through the tokenizer; the rest is array indexing, without Python per morpheme.
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

from corpus.execution.parts import Counts, Part, keep_only, key_of, named_in_errors, write_parquet, written_aside
from corpus.execution.workers import Workers, run_parts
from corpus.morphemes import Ints, Morphemes, morpheme_files, read_morphemes
from corpus.settings import ShardSettings
from korbert.durable import sha256_of
from korbert.errors import CorpusError
from korbert.tokenization.encoding import CONTINUATION, EOJEOL, MORPHEME, SENTENCE
from korbert.tokenization.tokenizer import Tokenizer

__all__ = ["SCHEMA", "shard"]

Ids = NDArray[np.int32]

_VERSION = 1  # raise it when the same input gives different bytes
_LIBRARIES = ("numpy", "pyarrow", "sentencepiece")

# One row per document, without special tokens. boundaries: the level of korbert.tokenization.encoding at each piece.
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
class _ShardUnit:
    """Work unit: some parts of morphemes to one training shard and one held-out shard."""

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
    """Writes `output`/train/part-*.arrow and heldout/part-*.arrow (SCHEMA), and pieces.parquet: id, piece and count in
    train, one row per entry of the vocabulary.

    morphemes: the folder of parts that `analyze` wrote. tokenizer: folder of a tokenizer. A shard without documents is
    not written. Returns the numbers of documents, morphemes and pieces, in total and held out (`heldout_documents`).
    """
    loaded = Tokenizer.load(tokenizer)
    units = list(_units(settings or ShardSettings(), morphemes, loaded.digest, output, seed, heldout_share))
    totals = run_parts("shard", _shard, units, workers=workers, initializer=_load_tokenizer, initargs=(tokenizer,))
    if totals["documents"] == totals["heldout_documents"]:
        raise CorpusError(f"{morphemes}: all documents are held out: bring more text or hold out less")
    for folder in _FOLDERS.values():
        (output / folder).mkdir(exist_ok=True)
        keep_only(output / folder, [f"{unit.part.name}.arrow" for unit in units])

    piece_counts = np.zeros(loaded.vocab_size, np.int64)
    for unit in units:
        with named_in_errors(unit.piece_counts):
            piece_counts += np.load(unit.piece_counts)
    ids = np.arange(loaded.vocab_size, dtype=np.int32)
    table = pa.table({"id": ids, "piece": loaded.tokens(ids.tolist()), "count": piece_counts})
    write_parquet(output / "pieces.parquet", table, output)
    return {f"{kind}{name}": totals[f"{kind}{name}"] for kind in ("", "heldout_") for name in _COUNTED}


def _units(
    settings: ShardSettings, morphemes: Path, digest: str, output: Path, seed: int, heldout_share: float
) -> Iterator[_ShardUnit]:
    """Neighbouring files in groups. A group ends as soon as it holds `part_bytes`."""
    paths = morpheme_files(morphemes)
    group: list[Path] = []
    number = 0
    for path in paths:
        group.append(path)
        if sum(member.stat().st_size for member in group) >= settings.part_bytes or path == paths[-1]:
            hashes = [sha256_of(member) for member in group]
            key = key_of(settings, _VERSION, digest, seed, str(heldout_share), *hashes, libraries=_LIBRARIES)
            yield _ShardUnit(Part(output, "shard", f"part-{number:05d}", key), tuple(group), seed, heldout_share)
            group, number = [], number + 1


def _load_tokenizer(folder: Path) -> None:
    global _tokenizer
    _tokenizer = Tokenizer.load(folder)


def _shard(unit: _ShardUnit) -> Counts:
    if _tokenizer is None:
        raise AssertionError("the worker was started without its tokenizer")
    batches: dict[bool, list[pa.RecordBatch]] = {False: [], True: []}  # by whether they are held out
    counts: Counter[str] = Counter()
    piece_counts = np.zeros(_tokenizer.vocab_size, np.int64)
    for path in unit.morphemes:
        morphemes = read_morphemes(path, seed=unit.seed, heldout_share=unit.heldout_share)
        batch = _batch(morphemes, _tokenizer)
        counts["morphemes"] += len(morphemes.forms.codes)
        counts["heldout_morphemes"] += int(np.diff(morphemes.bounds)[morphemes.heldout].sum())
        for heldout, chosen in batches.items():
            documents = batch.filter(pa.array(morphemes.heldout == heldout))
            ids = documents["input_ids"].flatten().to_numpy()
            sizes = {"documents": documents.num_rows, "pieces": len(ids)}
            counts.update(sizes)
            if heldout:
                counts.update({f"heldout_{name}": number for name, number in sizes.items()})
            else:
                piece_counts += np.bincount(ids, minlength=len(piece_counts))
            if documents.num_rows:
                chosen.append(documents)
    return unit.part.finish(_write_files(unit, batches, piece_counts), counts)


def _write_files(unit: _ShardUnit, batches: dict[bool, list[pa.RecordBatch]], piece_counts: Ints) -> Iterator[Path]:
    """Writes the shards that have documents, and the counts of pieces in the scratch folder."""

    def write_stream(path: Path, documents: Sequence[pa.RecordBatch]) -> None:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
            for batch in documents:
                writer.write_batch(batch)

    def write_counts(path: Path) -> None:
        with path.open("wb") as file:  # np.save would add .npy to another name
            np.save(file, piece_counts)

    for heldout, chosen in batches.items():
        path = unit.part.output / _FOLDERS[heldout] / f"{unit.part.name}.arrow"
        if chosen:
            yield written_aside(path, partial(write_stream, documents=chosen), unit.part.output)
        else:
            path.unlink(missing_ok=True)
    yield written_aside(unit.piece_counts, write_counts, unit.part.output)


def _batch(morphemes: Morphemes, tokenizer: Tokenizer) -> pa.RecordBatch:
    """The documents, with the columns of SCHEMA."""
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
    """The ids of all morphemes, concatenated, (P,) int32, and the number of ids of each, (M,) int64, at least 1."""
    # K kinds: distinct forms, with those that begin an eojeol apart from those that do not.
    key = morphemes.forms.codes * 2 + morphemes.begins_eojeol
    counts = np.bincount(key)
    used = np.flatnonzero(counts)  # (K,)
    place = np.cumsum(counts > 0) - 1
    kind = place[key]  # (M,)
    # The tokenizer encodes each kind once.
    names = morphemes.forms.names.take(pa.array(used // 2)).to_pylist()
    pieces = tokenizer.encode_forms(names, (used % 2).astype(bool).tolist())
    length = np.fromiter(map(len, pieces), np.int64, len(pieces))  # (K,)
    flat = np.fromiter(chain.from_iterable(pieces), np.int32, int(length.sum()))
    # Each morpheme copies the ids of its kind.
    first = np.cumsum(length) - length
    lengths = length[kind]  # (M,)
    begins = np.cumsum(lengths) - lengths
    return flat[np.repeat(first[kind] - begins, lengths) + np.arange(int(lengths.sum()))], lengths
