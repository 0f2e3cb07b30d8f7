"""Shards as one sequence of pieces, memory-mapped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from korbert.errors import ArtifactError, CorpusError
from korbert.pretraining.draws import ranges
from korbert.pretraining.objectives.masking import SpecialIds
from korbert.tokenization import SENTENCE

_RANDOM_PIECES = 500_000
_COLUMNS = ("source", "input_ids", "boundaries")


@dataclass(frozen=True, slots=True)
class _Block:
    """The documents of one record batch, concatenated. edges: where each begins, and the end of the last."""

    input_ids: NDArray[np.int32]
    boundaries: NDArray[np.uint8]
    edges: NDArray[np.int64]
    sources: pa.Array


class Shards:
    """The documents of Arrow stream files, concatenated. A place is an offset in pieces from the beginning of all.

    edges: (documents + 1,) int64, the place where each document begins, and the end.
    sentences: int64, ascending: the places where sentences begin (every document begins with one), and the end.
    sources: (documents,) int32, indices into `source_names`.
    Raises ArtifactError for a file that is not a shard, CorpusError if there are no pieces.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._blocks = [block for file in files for block in _blocks(file)]
        self._bases = np.cumsum([0, *(block.input_ids.size for block in self._blocks)], dtype=np.int64)
        if not self._bases[-1]:
            names = (", ".join(map(str, files[:3])) or "no files") + (", …" if len(files) > 3 else "")
            raise CorpusError(
                "{names}: no pieces in these shards; is the corpus empty, or all of it held out?", names=names
            )
        edges = []
        sentences = []
        for base, block in zip(self._bases, self._blocks, strict=False):
            edges.append(base + block.edges[:-1])
            begins = block.boundaries == SENTENCE
            begins[block.edges[:-1][np.diff(block.edges) > 0]] = True  # a document begins with a sentence
            sentences.append(base + np.flatnonzero(begins))
        self.edges = np.concatenate([*edges, self._bases[-1:]])
        self.sentences = np.concatenate([*sentences, self._bases[-1:]])
        coded = pa.chunked_array([block.sources for block in self._blocks]).dictionary_encode()
        self.source_names: list[str] = coded.chunk(0).dictionary.to_pylist()
        self.sources: NDArray[np.int32] = np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks])

    def __getstate__(self) -> dict[str, object]:
        """Leaves the pieces out; __setstate__ maps the files again."""
        return {name: value for name, value in vars(self).items() if name != "_blocks"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._blocks = [block for file in self._files for block in _blocks(file)]

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.edges) - 1

    def document(self, places: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """The document of a place, or of each, by number."""
        return np.asarray(self.edges.searchsorted(places, side="right")) - 1

    def runs(self, places: NDArray[np.int64]) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Source -> its runs among `places`, which ascend: the number of the first place of each, and their ranks.

        ranks: places of the source before each run, and in all. Place `r` of the source is in the last run whose rank
        is at most r. A corpus is sorted by source, so runs are few.
        """
        sources = self.sources[self.document(places)]
        firsts = np.flatnonzero(np.diff(sources, prepend=-1))
        lengths = np.diff(firsts, append=len(places))
        runs = {}
        for source in np.unique(sources):
            of_source = sources[firsts] == source
            runs[int(source)] = firsts[of_source], np.concatenate([[0], np.cumsum(lengths[of_source])])
        return runs

    def pieces(self, start: int, end: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Ids and boundaries of the places [start, end), which lie in one document."""
        number = int(np.searchsorted(self._bases, start, side="right")) - 1
        block = self._blocks[number]
        part = slice(start - int(self._bases[number]), end - int(self._bases[number]))
        return block.input_ids[part], block.boundaries[part]

    def gather(
        self, starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Ids and boundaries of many spans, one after the other. Each begins at a place and lies in one document."""
        ids = np.empty(lengths.sum(), dtype=np.int32)
        boundaries = np.empty(len(ids), dtype=np.uint8)
        offsets = np.cumsum(lengths) - lengths
        blocks = np.searchsorted(self._bases, starts, side="right") - 1
        order = np.argsort(blocks, kind="stable")
        numbers, firsts = np.unique(blocks[order], return_index=True)
        for number, spans in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=True):
            block = self._blocks[min(number, len(self._blocks) - 1)]  # an empty span may begin at the end
            source_places = ranges(starts[spans] - self._bases[number], lengths[spans])
            target_places = ranges(offsets[spans], lengths[spans])
            ids[target_places] = block.input_ids[source_places]
            boundaries[target_places] = block.boundaries[source_places]
        return ids, boundaries


def _blocks(file: Path) -> Iterator[_Block]:
    """One block a record batch. The arrays are views of the mapped file."""
    try:
        table = datasets.Dataset.from_file(str(file)).data.table
    except (OSError, pa.ArrowInvalid) as error:
        raise ArtifactError(
            "{file}: is not an Arrow stream file ({error}); rebuild the shards", file=file, error=error
        ) from error
    missing = [name for name in _COLUMNS if name not in table.column_names]
    if missing:
        raise ArtifactError(
            "{file}: no column {missing}, only {column_names}",
            file=file,
            missing=", ".join(missing),
            column_names=", ".join(table.column_names),
        )
    for batch in table.to_batches():
        ids = batch.column("input_ids")
        boundaries = batch.column("boundaries")
        edges = ids.offsets.to_numpy().astype(np.int64)
        if not np.array_equal(np.diff(edges), np.diff(boundaries.offsets.to_numpy())):
            raise ArtifactError("{file}: input_ids and boundaries differ in length; rebuild the shards", file=file)
        sources = batch.column("source").cast(pa.string())
        yield _Block(ids.flatten().to_numpy(), boundaries.flatten().to_numpy(), edges - edges[0], sources)


def write_random_shards(folder: Path, ids: SpecialIds, seed: int) -> None:
    """Writes shards of random ids with full rows: each piece is a sentence, so that examples may end anywhere."""
    rng = np.random.default_rng(seed)
    pieces = rng.integers(ids.first_piece, ids.vocab_size, size=(2, _RANDOM_PIECES // 2), dtype=np.int32)
    columns = {
        "id": ["made-up:0", "made-up:1"],
        "source": ["made-up"] * 2,
        "input_ids": pa.array(list(pieces), pa.list_(pa.int32())),
        "boundaries": pa.array(list(np.full_like(pieces, SENTENCE, np.uint8)), pa.list_(pa.uint8())),
    }
    table = pa.table(columns)
    for part in ("train", "heldout"):
        (folder / part).mkdir(parents=True)
        with pa.ipc.new_stream(str(folder / part / "part-00000.arrow"), table.schema) as stream:
            stream.write_table(table)
    counts = np.bincount(pieces.reshape(-1), minlength=ids.vocab_size)
    pq.write_table(pa.table({"count": counts}), folder / "pieces.parquet")
