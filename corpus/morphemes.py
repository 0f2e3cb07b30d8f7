"""The columns of analyzed documents, and their flat arrays, which counting and sharding use without Python loops."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from korbert.corpus.documents import is_heldout
from korbert.corpus.execution.parts import read_table

# One row per document. The lists are parallel, one entry per morpheme; start and end are offsets in code points.
SCHEMA = pa.schema(
    {"id": pa.string(), "source": pa.string(), "form": pa.list_(pa.string()), "tag": pa.list_(pa.string())}
    | dict.fromkeys(("start", "end", "sentence", "eojeol"), pa.list_(pa.int32()))
)


@dataclass(frozen=True)
class Codes:
    """N strings as codes: (N,) int64 indices into `names`, which are distinct."""

    codes: NDArray[np.int64]
    names: pa.Array

    @classmethod
    def of(cls, texts: pa.Array) -> "Codes":
        encoded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
        return cls(encoded.indices.to_numpy().astype(np.int64), encoded.dictionary)


@dataclass(frozen=True)
class MorphemeArrays:
    """D documents with M morphemes in total.

    heldout: (D,) bool. bounds: (D + 1,) int64, the offsets of each document's morphemes. begins_sentence,
    begins_eojeol: (M,) bool, True for the first morpheme of each.
    """

    ids: pa.Array
    sources: pa.Array
    heldout: NDArray[np.bool_]
    bounds: NDArray[np.int64]
    forms: Codes
    tags: Codes
    begins_sentence: NDArray[np.bool_]
    begins_eojeol: NDArray[np.bool_]


def read_morphemes(path: Path, *, seed: int, heldout_share: float) -> MorphemeArrays:
    """Reads one part, without the spans of its morphemes."""
    columns = ["id", "source", "form", "tag", "sentence", "eojeol"]
    table = read_table(path, columns, read_dictionary=["form.list.element", "tag.list.element"])
    arrays = {name: table[name].combine_chunks() for name in columns}
    bounds = arrays["form"].offsets.to_numpy().astype(np.int64)
    bounds -= bounds[0]
    sentence, eojeol = (arrays[name].flatten().to_numpy() for name in ("sentence", "eojeol"))
    return MorphemeArrays(
        ids=arrays["id"],
        sources=arrays["source"],
        heldout=np.array([is_heldout(id, seed, heldout_share) for id in arrays["id"].to_pylist()], bool),
        bounds=bounds,
        forms=Codes.of(arrays["form"].flatten()),
        tags=Codes.of(arrays["tag"].flatten()),
        begins_sentence=changes(sentence, bounds),
        begins_eojeol=changes(eojeol, bounds),
    )


def changes(numbers: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Returns (M,) bool: whether a number differs from the one before it, or is the first of its document.

    bounds: (D + 1,), the offsets of each document's numbers.
    """
    begins = np.ones(len(numbers), bool)
    begins[1:] = numbers[1:] != numbers[:-1]
    firsts = bounds[:-1]
    begins[firsts[firsts < bounds[1:]]] = True
    return begins
