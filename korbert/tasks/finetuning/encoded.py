"""Caches the pieces of texts in Parquet parts that later runs reuse.

A part is `texts-<made from>-<content>.parquet`. The first digest covers its texts, the tokenizer and the columns, so
a matching part is valid whoever wrote it; the second is that of the file's bytes, to detect damage.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from korbert.durable import write_whole
from korbert.errors import ArtifactError
from korbert.progress import track
from korbert.tasks.passages import MANY_TEXTS, Passage
from korbert.tokenization import AnyTokenizer
from korbert.training.examples import Examples
from korbert.world import from_first

__all__ = ["EncodedTexts", "Extra"]

Extra = Literal["morphemes", "spans"]

_PART_CHARS, _PART_TEXTS = 500_000, 10_000  # most that an interrupted run analyses again
_FIELDS = {
    "input_ids": pa.list_(pa.int32()),  # without special tokens
    "boundaries": pa.list_(pa.uint8()),
    "morphemes": pa.list_(pa.string()),  # forms
    "spans": pa.list_(pa.int32()),  # start and end of each piece in turn, in code points of the text
}


class EncodedTexts:
    """The pieces of a list of texts, cached in a folder. extra: columns besides input_ids and boundaries."""

    def __init__(self, folder: Path, texts: Sequence[str], tokenizer: AnyTokenizer, *extra: Extra) -> None:
        self._folder = folder
        self._tokenizer = tokenizer
        self._schema = pa.schema([(name, _FIELDS[name]) for name in ("input_ids", "boundaries", *extra)])
        self._parts = [(self._name(part), part) for part in _parts(texts)]

    def _name(self, texts: Sequence[str]) -> str:
        """File name prefix of a part."""
        digest = hashlib.sha256(" ".join([self._tokenizer.digest, *self._schema.names]).encode())
        for text in texts:
            digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        return f"texts-{digest.hexdigest()[:32]}"

    def make(self, workers: int, description: str = "analyze") -> None:
        """Analyses the texts of missing or damaged parts, on `workers` threads if there are many.

        With several connected processes, only one does so.
        """
        from_first(lambda: self._make(workers, description))

    def _make(self, workers: int, description: str) -> None:
        missing = [(name, texts) for name, texts in self._parts if self._read(name) is None]
        total, left = (sum(len(texts) for _, texts in parts) for parts in (self._parts, missing))
        threads = workers if left > MANY_TEXTS else 0
        with track(description, total, "texts", total - left) as advance:
            for name, texts in missing:
                sink = pa.BufferOutputStream()
                pq.write_table(self._encode(texts, threads), sink, compression="zstd")
                data = memoryview(sink.getvalue())
                write_whole(self._folder / f"{name}-{_content(data)}.parquet", data)
                advance(len(texts))

    def examples(self, labels: NDArray[np.int64], max_length: int) -> Examples:
        """[CLS] pieces [SEP] of each text, truncated to `max_length` as in Tokenizer.encode."""
        tokenizer, room = self._tokenizer, max_length - 2
        rows = (
            ([tokenizer.cls_id, *ids[:room], tokenizer.sep_id], [0, *levels[:room], 0])
            for ids, levels in self._rows("input_ids", "boundaries")
        )
        return Examples.of_rows(rows, labels, tokenizer.pad_id)

    def morphemes(self) -> Iterator[list[str]]:
        """Morpheme forms of each text, in order."""
        return (forms for (forms,) in self._rows("morphemes"))

    def passages(self) -> list[Passage]:
        """Each text with its pieces and spans, in order."""
        passages: list[Passage] = []
        for texts, table in self._tables():
            columns = [table[name].combine_chunks() for name in ("input_ids", "boundaries", "spans")]
            ids, boundaries, spans = (column.values.to_numpy() for column in columns)
            spans = spans.reshape(-1, 2)
            bounds = pairwise(columns[0].offsets.to_pylist())
            passages += [
                Passage(text, ids[start:end], boundaries[start:end], spans[start:end])
                for text, (start, end) in zip(texts, bounds, strict=True)
            ]
        return passages

    def _rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        for _, table in self._tables():
            yield from zip(*(table[name].to_pylist() for name in names), strict=True)

    def _tables(self) -> Iterator[tuple[Sequence[str], pa.Table]]:
        for name, texts in self._parts:
            data = self._read(name)
            if data is None:
                raise ArtifactError(
                    f"{self._folder}: the cached pieces of {len(texts):,} texts are missing: run this again"
                )
            yield texts, pq.ParquetFile(pa.BufferReader(data)).read()

    def _read(self, name: str) -> bytes | None:
        """The bytes of a part, or None if it is missing; a damaged file is removed."""
        for path in self._folder.glob(f"{name}-*.parquet"):
            data = path.read_bytes()
            if path.stem.endswith(_content(data)):
                return data
            path.unlink()
        return None

    def _encode(self, texts: Sequence[str], threads: int) -> pa.Table:
        columns: dict[str, list[Any]] = {}
        if "morphemes" in self._schema.names:
            analyses = list(self._tokenizer.analyzer.analyze_many(texts, workers=threads))
            columns["morphemes"] = [analysis.forms for analysis in analyses]
            encoded = [self._tokenizer.pieces(analysis, text) for text, analysis in zip(texts, analyses, strict=True)]
        else:
            encoded = list(self._tokenizer.pieces_of_many(texts, workers=threads))
        columns["input_ids"] = [pieces.ids for pieces in encoded]
        columns["boundaries"] = [pieces.boundaries for pieces in encoded]
        if "spans" in self._schema.names:
            columns["spans"] = [list(chain.from_iterable(pieces.spans)) for pieces in encoded]
        return pa.table({name: columns[name] for name in self._schema.names}, schema=self._schema)


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Splits texts into parts, in order; a part ends with the text that fills it."""
    start = chars = 0
    for end, text in enumerate(texts, 1):
        chars += len(text)
        if chars >= _PART_CHARS or end - start == _PART_TEXTS or end == len(texts):
            yield texts[start:end]
            start, chars = end, 0


def _content(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
