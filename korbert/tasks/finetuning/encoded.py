"""Caches the pieces of texts in Parquet parts that later runs reuse.

A part is `texts-<made from>-<content>.parquet`. The first digest covers its texts, the tokenizer and the columns, so
a matching part is valid whoever wrote it; the second is that of the file's bytes, to detect damage.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from korbert.errors import ArtifactError
from korbert.system import broadcast, content_digest, intact, track, write_bytes_atomically
from korbert.tasks.passages import MANY_TEXTS, Passage
from korbert.tokenization import AnyTokenizer

_PART_CHARS = 500_000  # the most that an interrupted run analyses again
_PART_TEXTS = 10_000
_SCHEMA = pa.schema(
    {
        "input_ids": pa.list_(pa.int32()),  # without special tokens
        "boundaries": pa.list_(pa.uint8()),
        "morphemes": pa.list_(pa.string()),  # forms
        "spans": pa.list_(pa.int32()),  # start and end of each piece in turn, in code points of the text
    }
)


class EncodedTexts:
    """The pieces and morphemes of a list of texts, cached in a folder."""

    def __init__(self, folder: Path, texts: Sequence[str], tokenizer: AnyTokenizer) -> None:
        self.texts = texts
        self._folder = folder
        self._tokenizer = tokenizer
        self._parts: list[tuple[str, Sequence[str]]] = []  # prefix of the file's name, texts
        made_from = hashlib.sha256(" ".join([tokenizer.digest, *_SCHEMA.names]).encode())
        for part in _parts(texts):
            digest = made_from.copy()
            for text in part:
                digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
            self._parts.append((f"texts-{digest.hexdigest()[:32]}", part))

    def make(self, workers: int, description: str = "analyze") -> None:
        """Analyses the texts of missing or damaged parts, on `workers` threads if there are many.

        With several connected processes, only one does so.
        """

        def analyze() -> None:
            missing = [(name, texts) for name, texts in self._parts if intact(self._folder, name) is None]
            total, num_missing = (sum(len(texts) for _, texts in parts) for parts in (self._parts, missing))
            threads = workers if num_missing > MANY_TEXTS else 0  # Kiwi is loaded again for threads
            with track(description, total, "texts", total - num_missing) as advance:
                for name, texts in missing:
                    sink = pa.BufferOutputStream()
                    analyses = list(self._tokenizer.analyzer.analyze_many(texts, workers=threads))
                    pieces_of_texts = [self._tokenizer.pieces(*pair) for pair in zip(analyses, texts, strict=True)]
                    columns = {
                        "input_ids": [pieces.ids for pieces in pieces_of_texts],
                        "boundaries": [pieces.boundaries for pieces in pieces_of_texts],
                        "morphemes": [analysis.forms for analysis in analyses],
                        "spans": [list(chain.from_iterable(pieces.spans)) for pieces in pieces_of_texts],
                    }
                    pq.write_table(pa.table(columns, schema=_SCHEMA), sink, compression="zstd")
                    data = memoryview(sink.getvalue())
                    write_bytes_atomically(self._folder / f"{name}-{content_digest(data)}.parquet", data)
                    advance(len(texts))

        broadcast(analyze)

    def morphemes(self) -> Iterator[list[str]]:
        """Morpheme forms of each text, in order."""
        for _, table in self._tables():
            yield from table["morphemes"].to_pylist()

    def passages(self) -> dict[str, Passage]:
        """Returns text -> the text with its pieces and their spans."""
        passages: dict[str, Passage] = {}
        for texts, table in self._tables():
            columns = [table[name].combine_chunks() for name in ("input_ids", "boundaries", "spans")]
            ids, boundaries, spans = (column.values.to_numpy() for column in columns)
            spans = spans.reshape(-1, 2)
            bounds = pairwise(columns[0].offsets.to_pylist())
            for text, (start, end) in zip(texts, bounds, strict=True):
                passages[text] = Passage(text, ids[start:end], boundaries[start:end], spans[start:end])
        return passages

    def _tables(self) -> Iterator[tuple[Sequence[str], pa.Table]]:
        for name, texts in self._parts:
            path = intact(self._folder, name)
            if path is None:
                raise ArtifactError(
                    "{folder}: the cached pieces of {num_texts:,} texts are missing: run this again",
                    folder=self._folder,
                    num_texts=len(texts),
                )
            yield texts, pq.read_table(path)


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Splits texts into parts, in order; a part ends with the text that fills it."""
    start = chars = 0
    for end, text in enumerate(texts, 1):
        chars += len(text)
        if chars >= _PART_CHARS or end - start == _PART_TEXTS or end == len(texts):
            yield texts[start:end]
            start = end
            chars = 0
