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

from corpus.documents import grouped
from corpus.execution.parts import Counts, Part, keep_only, key_of, named_in_errors, write_parquet, written_aside
from corpus.execution.workers import Workers, run_parts
from corpus.morphemes import Ints, Morphemes, morpheme_files, read_morphemes
from corpus.settings import ShardSettings
from korbert.durable import sha256_of
from korbert.errors import CorpusError
from korbert.tokenization.pieces import CONTINUATION, EOJEOL, MORPHEME, SENTENCE
from korbert.tokenization.tokenizer import Tokenizer

_VERSION = 1  # raise it when the same input gives different bytes
_LIBRARIES = ("numpy", "pyarrow", "sentencepiece")

# One row per document, without special tokens. boundaries: the level of korbert.tokenization.encoding at each piece.
SCHEMA = pa.schema(
    {"id": pa.string(), "source": pa.string(), "input_ids": pa.list_(pa.int32()), "boundaries": pa.list_(pa.uint8())}
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
    settings = settings or ShardSettings()
    units: list[_ShardUnit] = []
    for group in grouped(morpheme_files(morphemes), settings.part_bytes, lambda path: path.stat().st_size):
        hashes = [sha256_of(path) for path in group]
        key = key_of(settings, _VERSION, loaded.digest, seed, str(heldout_share), *hashes, libraries=_LIBRARIES)
        part = Part(output, "shard", f"part-{len(units):05d}", key)
        units.append(_ShardUnit(part, tuple(group), seed, heldout_share))
    totals = run_parts("shard", _shard, units, workers=workers, initializer=load_tokenizer, initargs=(tokenizer,))
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


def load_tokenizer(folder: Path) -> None:
    """Loads the tokenizer of a worker."""
    global _tokenizer
    _tokenizer = Tokenizer.load(folder)


def _shard(unit: _ShardUnit) -> Counts:
    assert _tokenizer is not None
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

    for heldout, documents in batches.items():
        path = unit.part.output / _FOLDERS[heldout] / f"{unit.part.name}.arrow"
        if documents:
            yield written_aside(path, partial(write_stream, documents=documents), unit.part.output)
        else:
            path.unlink(missing_ok=True)

    def write_counts(path: Path) -> None:
        with path.open("wb") as file:  # np.save would add .npy to another name
            np.save(file, piece_counts)

    yield written_aside(unit.piece_counts, write_counts, unit.part.output)


def _batch(morphemes: Morphemes, tokenizer: Tokenizer) -> pa.RecordBatch:
    """The documents, with the columns of SCHEMA."""
    # K kinds: distinct forms, with those that begin an eojeol apart from those that do not. Each is encoded once.
    codes = morphemes.forms.codes * 2 + morphemes.begins_eojeol  # (M,)
    is_used = np.bincount(codes) > 0
    keys, kinds = np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]  # (K,), (M,)
    forms = morphemes.forms.names.take(pa.array(keys // 2)).to_pylist()
    pieces = tokenizer.encode_forms(forms, (keys % 2).astype(bool).tolist())
    lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))  # (K,), at least 1
    flat = np.fromiter(chain.from_iterable(pieces), np.int32, int(lengths.sum()))
    # Each morpheme copies the ids of its kind.
    starts = np.cumsum(lengths) - lengths  # (K,)
    ends = np.concatenate([[0], np.cumsum(lengths[kinds])])  # (M + 1,), the first piece of each morpheme
    ids = flat[np.repeat(starts[kinds] - ends[:-1], lengths[kinds]) + np.arange(ends[-1])]  # (P,)

    levels = np.full(len(kinds), MORPHEME, np.uint8)  # (M,)
    levels[morphemes.begins_eojeol] = EOJEOL
    levels[morphemes.begins_sentence] = SENTENCE
    boundaries = np.full(len(ids), CONTINUATION, np.uint8)
    boundaries[ends[:-1]] = levels
    bounds = pa.array(ends[morphemes.bounds], pa.int32())
    lists = [pa.ListArray.from_arrays(bounds, pa.array(values)) for values in (ids, boundaries)]
    return pa.RecordBatch.from_arrays([morphemes.ids, morphemes.sources, *lists], schema=SCHEMA)
