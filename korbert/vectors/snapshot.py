"""A consistent state of an index with its files open, which searches read."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from korbert.errors import ArtifactError
from korbert.vectors.exact import best_of, nearest
from korbert.vectors.graph import has_usearch, nearest_in_graph, open_graph
from korbert.vectors.ranking import Found
from korbert.vectors.storage import PartRecord, Record, check_file, read_record
from korbert.vectors.words import Words, has_bm25s

__all__ = ["Part", "Snapshot", "opened"]

_QUERIES_AT_ONCE = 64


@dataclass(frozen=True)
class Part:
    """A part with its files memory-mapped. graph: None without one."""

    record: PartRecord
    table: pa.Table
    vectors: NDArray[np.float32]
    graph: Any

    @property
    def live(self) -> NDArray[np.int64]:
        """Rows not removed."""
        return np.setdiff1d(np.arange(self.record.rows), np.array(self.record.removed, dtype=np.int64))

    def nearest(self, queries: NDArray[np.float32], top: int) -> list[list[Found]]:
        """For each query (Q, D) the nearest rows of this part."""
        if self.graph is None:
            return nearest(self.vectors, queries, self.record.removed, top)
        return nearest_in_graph(self.graph, self.vectors, queries, self.record.removed, top)


@dataclass(frozen=True)
class Snapshot:
    """The record, and the parts that it names. Rows are numbered through all parts."""

    folder: Path
    record: Record
    parts: tuple[Part, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(part.record.rows for part in self.parts)]

    def __len__(self) -> int:
        return sum(part.record.live for part in self.parts)

    def places(self) -> dict[str, tuple[int, int]]:
        """Id -> part and row in it, of each text."""
        found: dict[str, tuple[int, int]] = {}
        for number, part in enumerate(self.parts):
            ids = part.table["id"].to_pylist()
            found |= {ids[row]: (number, row) for row in part.live.tolist()}
        return found

    def text(self, row: int) -> tuple[str, str]:
        """Id and text of a row."""
        number = bisect_right(self._starts, row) - 1
        table, place = self.parts[number].table, row - self._starts[number]
        return table["id"][place].as_py(), table["text"][place].as_py()

    def rows(self, run: range) -> tuple[pa.Table, NDArray[np.float32]]:
        """The live rows of some parts, and their vectors."""
        parts = self.parts[run.start : run.stop]
        tables = [part.table.take(part.live) for part in parts]
        return pa.concat_tables(tables), np.concatenate([part.vectors[part.live] for part in parts])

    def nearest(self, queries: NDArray[np.float32], top: int) -> list[list[Found]]:
        """For each query (Q, D), of length 1, the `top` nearest rows."""
        found: list[list[Found]] = []
        for first in range(0, len(queries), _QUERIES_AT_ONCE):
            own = queries[first : first + _QUERIES_AT_ONCE]
            best: list[list[Found]] = [[] for _ in own]
            for start, part in zip(self._starts, self.parts, strict=False):
                for number, rows in enumerate(part.nearest(own, top)):
                    best[number] = best_of([*best[number], *((start + row, score) for row, score in rows)], top)
            found += best
        return found

    @cached_property
    def words(self) -> Words:
        """The BM25 ranker: from the record, or built from the terms if it is missing or damaged."""
        if (kept := self.record.words) is not None and has_bm25s():
            try:
                for name, file in kept.files.items():
                    check_file(self.folder / kept.name / name, file)
                return Words.load(self.folder / kept.name)
            except (ArtifactError, OSError, ValueError):  # also where a writer has replaced it just now
                pass
        terms: list[list[str]] = []
        rows: list[int] = []
        for start, part in zip(self._starts, self.parts, strict=False):
            live = part.live
            terms += part.table["terms"].take(live).to_pylist()
            rows += (start + live).tolist()
        return Words.of(terms, rows)


def opened(folder: Path, before: Sequence[Part] = ()) -> Snapshot:
    """Opens the index in a folder. ArtifactError if a file is missing or has another digest.

    before: parts of an earlier snapshot, which are reused.
    """
    known = {part.record.name: part for part in before}
    record = read_record(folder)
    while True:
        try:
            return Snapshot(folder, record, tuple(_part(folder, own, known.get(own.name)) for own in record.parts))
        except ArtifactError:
            newer = read_record(folder)
            if newer == record:
                raise
            record = newer  # a writer has replaced the record, and deleted files that it no longer names


def _part(folder: Path, record: PartRecord, before: Part | None) -> Part:
    if before is not None and before.record.files == record.files:
        return Part(record, before.table, before.vectors, before.graph)
    for ending, file in record.files.items():
        check_file(folder / f"{record.name}.{ending}", file)
    path = folder / record.name
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path.with_suffix(".arrow")))).read_all()
        vectors = np.load(path.with_suffix(".npy"), mmap_mode="r")
        has_graph = "usearch" in record.files and has_usearch()
        return Part(record, table, vectors, open_graph(path.with_suffix(".usearch")) if has_graph else None)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path}: cannot be read ({error}): make the index again") from None
