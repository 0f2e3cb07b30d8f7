"""Morphemes -> ids and boundaries in Arrow stream files, which `datasets.Dataset.from_file` maps in place.

Only the distinct forms of a part go through the tokenizer; the rest is array indexing, without Python per morpheme.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from korbert.corpus.corpus_settings import ShardSettings
from korbert.corpus.documents import group_by_size
from korbert.corpus.execution import parts
from korbert.corpus.execution.parts import OutputPart
from korbert.corpus.execution.workers import Workers, run_parts
from korbert.corpus.morphemes import MorphemeArrays, read_morphemes
from korbert.errors import CorpusError
from korbert.system import sha256_of
from korbert.tokenization import CONTINUATION, EOJEOL, MORPHEME, SENTENCE, Tokenizer

_VERSION = 1  # raise it when the same input gives different bytes
_LIBRARIES = ("numpy", "pyarrow", "sentencepiece")

# One row per document, without special tokens. boundaries: the level of korbert.tokenization.encoding at each piece.
SCHEMA = pa.schema(
    {"id": pa.string(), "source": pa.string(), "input_ids": pa.list_(pa.int32()), "boundaries": pa.list_(pa.uint8())}
)
_COUNTED = ("documents", "morphemes", "pieces")
_FOLDERS = {False: "train", True: "heldout"}

_tokenizer: Tokenizer | None = None  # one in each worker process


def shard(
    morphemes: Path, tokenizer: Path, output: Path, settings: ShardSettings, *, workers: int | Workers
) -> dict[str, int]:
    """Writes `output`/train/part-*.arrow and heldout/part-*.arrow (SCHEMA), and pieces.parquet: id, piece and count in
    train, one row per entry of the vocabulary.

    morphemes: the folder of parts that `analyze` wrote. tokenizer: folder of a tokenizer. A shard without documents is
    not written. Returns the numbers of documents, morphemes and pieces, in total and held out (`heldout_documents`).
    """
    loaded_tokenizer = Tokenizer.load(tokenizer)
    work: dict[OutputPart, tuple[list[Path], int, float]] = {}
    paths = parts.part_files(morphemes, made_by="analyze")
    for group in group_by_size(paths, settings.part_bytes, lambda path: path.stat().st_size):
        hashes = [sha256_of(path) for path in group]
        key = parts.key_of(settings, _VERSION, loaded_tokenizer.digest, *hashes, libraries=_LIBRARIES)
        work[OutputPart(output, "shard", f"part-{len(work):05d}", key)] = group, settings.seed, settings.heldout_share
    totals = run_parts("shard", _shard, work, workers=workers, initializer=partial(load_tokenizer, tokenizer))
    if totals["documents"] == totals["heldout_documents"]:
        raise CorpusError(
            "{morphemes}: all documents are held out: bring more text or hold out less", morphemes=morphemes
        )
    for folder in _FOLDERS.values():
        (output / folder).mkdir(exist_ok=True)
        parts.keep_only(output / folder, [f"{part.name}.arrow" for part in work])

    piece_counts = np.zeros(loaded_tokenizer.vocab_size, np.int64)
    for part in work:
        with parts.named_in_errors(path := part.scratch(suffix=".npy")):
            piece_counts += np.load(path)
    ids = np.arange(loaded_tokenizer.vocab_size, dtype=np.int32)
    table = pa.table({"id": ids, "piece": loaded_tokenizer.tokens(ids.tolist()), "count": piece_counts})
    parts.write_parquet(output / "pieces.parquet", table, output)
    return {f"{kind}{name}": totals[f"{kind}{name}"] for kind in ("", "heldout_") for name in _COUNTED}


def load_tokenizer(folder: Path) -> None:
    """Loads the tokenizer of a worker."""
    global _tokenizer
    _tokenizer = Tokenizer.load(folder)


def _shard(part: OutputPart, paths: Sequence[Path], seed: int, heldout_share: float) -> dict[str, int]:
    """Writes the shards of some parts of morphemes, and the counts of their pieces in the scratch folder."""
    assert _tokenizer is not None
    batches: list[tuple[pa.RecordBatch, NDArray[np.bool_]]] = []  # documents, and which of them are held out
    counts: Counter[str] = Counter()
    for path in paths:
        morphemes = read_morphemes(path, seed=seed, heldout_share=heldout_share)
        batches.append((_batch(morphemes, _tokenizer), morphemes.heldout))
        counts["morphemes"] += len(morphemes.forms.codes)
        counts["heldout_morphemes"] += int(np.diff(morphemes.bounds)[morphemes.heldout].sum())

    files = []
    for heldout, folder in _FOLDERS.items():
        split_batches = [documents.filter(pa.array(mask == heldout)) for documents, mask in batches]
        ids = np.concatenate([documents["input_ids"].flatten().to_numpy() for documents in split_batches])
        sizes = {"documents": sum(documents.num_rows for documents in split_batches), "pieces": len(ids)}
        counts.update(sizes)
        path = part.output / folder / f"{part.name}.arrow"
        if sizes["documents"]:
            files.append(parts.written_aside(path, partial(_write_stream, split_batches), part.output))
        else:
            path.unlink(missing_ok=True)
        if heldout:
            counts.update({f"heldout_{name}": number for name, number in sizes.items()})
        else:
            piece_counts = np.bincount(ids, minlength=_tokenizer.vocab_size)
            path = part.scratch(suffix=".npy")
            files.append(parts.written_aside(path, partial(np.save, arr=piece_counts), part.output))
    return part.finish(files, counts)


def _write_stream(batches: Sequence[pa.RecordBatch], file: IO[bytes]) -> None:
    with pa.ipc.new_stream(file, SCHEMA) as writer:
        for batch in batches:
            if batch.num_rows:
                writer.write_batch(batch)


def _batch(morphemes: MorphemeArrays, tokenizer: Tokenizer) -> pa.RecordBatch:
    """The documents, with the columns of SCHEMA."""
    # K kinds: distinct forms, with those that begin an eojeol apart from those that do not. Each is encoded once.
    codes = morphemes.forms.codes * 2 + morphemes.begins_eojeol  # (M,)
    is_used = np.bincount(codes) > 0
    keys = np.flatnonzero(is_used)  # (K,)
    kinds = (np.cumsum(is_used) - 1)[codes]  # (M,)
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
