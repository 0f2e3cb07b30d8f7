"""The columns of analysed documents, and flat arrays of them, on which counting and sharding work without loops."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from corpus.documents import is_heldout
from corpus.parts import part_files
from korbert.errors import CorpusError

__all__ = ["SCHEMA", "Bools", "Codes", "Ints", "Morphemes", "changes", "morpheme_files", "read_morphemes"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# One row a document. The lists run in parallel, one entry a morpheme; start and end are code points of the text.
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("form", pa.list_(pa.string())),
        ("tag", pa.list_(pa.string())),
        ("start", pa.list_(pa.int32())),
        ("end", pa.list_(pa.int32())),
        ("sentence", pa.list_(pa.int32())),
        ("eojeol", pa.list_(pa.int32())),
    ]
)


@dataclass(frozen=True)
class Codes:
    """Texts as numbers: codes (M,) int64 into `names`, whose entries differ."""

    codes: Ints
    names: pa.Array

    @classmethod
    def of(cls, texts: pa.Array) -> "Codes":
        encoded = texts.dictionary_encode()
        return cls(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary)


@dataclass(frozen=True)
class Morphemes:
    """Some documents, D of them, with M morphemes in all.

    bounds: (D + 1,) int64, where each document's morphemes begin and end. begins_sentence, begins_eojeol: (M,) bool,
    the first morpheme of each.
    """

    ids: pa.Array
    sources: pa.Array
    bounds: Ints
    forms: Codes
    tags: Codes
    begins_sentence: Bools
    begins_eojeol: Bools

    @property
    def document(self) -> Ints:
        """(M,) int64: the document of each morpheme."""
        return np.repeat(np.arange(len(self.ids)), np.diff(self.bounds))


def morpheme_files(folder: Path) -> list[Path]:
    """The parts that `analyze` wrote."""
    paths = part_files(folder)
    if not paths:
        raise CorpusError(f"{folder}: no part-*.parquet in there: run `korbert analyze` first")
    return paths


def read_morphemes(path: Path, *, seed: int, heldout_share: float) -> Iterator[tuple[bool, Morphemes]]:
    """(False, documents to learn from) and (True, those held out) of one part."""
    table = pq.read_table(path, columns=["id", "source", "form", "tag", "sentence", "eojeol"]).combine_chunks()
    heldout = np.array([is_heldout(one, seed, heldout_share) for one in table["id"].to_pylist()], bool)
    for wanted in (False, True):
        yield wanted, _flat(table.filter(pa.array(heldout == wanted)).combine_chunks())


def changes(values: Ints, bounds: Ints) -> Bools:
    """(M,) bool: where a list begins or its number differs from the one before. bounds: (D + 1,) of the lists."""
    begins = np.ones(len(values), bool)
    begins[1:] = values[1:] != values[:-1]
    starts = bounds[:-1]
    begins[starts[starts < bounds[1:]]] = True
    return begins


def _flat(table: pa.Table) -> Morphemes:
    columns = {name: _one_array(table[name]) for name in table.column_names}
    bounds = columns["form"].offsets.to_numpy().astype(np.int64)
    sentence, eojeol = (columns[name].flatten().to_numpy() for name in ("sentence", "eojeol"))
    bounds = bounds - bounds[0]
    return Morphemes(
        ids=columns["id"],
        sources=columns["source"],
        bounds=bounds,
        forms=Codes.of(columns["form"].flatten()),
        tags=Codes.of(columns["tag"].flatten()),
        begins_sentence=changes(sentence, bounds),
        begins_eojeol=changes(eojeol, bounds),
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
