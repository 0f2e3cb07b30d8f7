"""Texts analysed once: the pieces and the morphemes of each, in Parquet parts that later runs find again."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from korbert.durable import write_whole
from korbert.errors import ArtifactError
from korbert.progress import track
from korbert.tasks.examples import Examples
from korbert.tasks.passages import digest_of
from korbert.tokenization import Tokenizer

__all__ = ["Encoded"]

_PART_TEXTS = 10_000  # a run that was cut off analyses at most so many texts again
_SCHEMA = pa.schema(
    [
        ("input_ids", pa.list_(pa.int32())),  # without special tokens
        ("boundaries", pa.list_(pa.uint8())),
        ("morphemes", pa.list_(pa.string())),  # forms
    ]
)


class Encoded:
    """The pieces and the morphemes of a list of texts, in files `texts-<made from>-<content>.parquet` of a folder.

    The first digest is over texts and tokenizer, so that a part that is there is the right one, whoever made it; the
    second is that of the file, by which damage is found.
    """

    def __init__(self, folder: Path, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        self._folder = folder
        self._tokenizer = tokenizer
        parts = [texts[start : start + _PART_TEXTS] for start in range(0, len(texts), _PART_TEXTS)]
        self._parts = [(f"texts-{digest_of(tokenizer, part)}", part) for part in parts]

    def make(self, workers: int, description: str = "analyze") -> None:
        """Analyses what has not been analysed yet, on that many threads."""
        with track(description, total=sum(len(texts) for _, texts in self._parts), unit="texts") as advance:
            for name, texts in self._parts:
                if self._find(name) is None:
                    data = _encode(texts, self._tokenizer, workers)
                    write_whole(self._folder / f"{name}-{_content(data)}.parquet", data)
                advance(len(texts))

    def _find(self, name: str) -> Path | None:
        """The file of a part, if it is there as it was written; one that is not is removed."""
        for path in self._folder.glob(f"{name}-*.parquet"):
            if path.stem.endswith(_content(path.read_bytes())):
                return path
            path.unlink()
        return None

    def examples(self, labels: NDArray[np.int64], max_length: int) -> Examples:
        """[CLS] pieces [SEP] of each text, cut to `max_length` as Tokenizer.encode cuts it."""
        tokenizer, room = self._tokenizer, max_length - 2
        rows = (
            ([tokenizer.cls_id, *ids[:room], tokenizer.sep_id], [0, *levels[:room], 0])
            for ids, levels in self._columns("input_ids", "boundaries")
        )
        return Examples.of_rows(rows, labels, tokenizer.pad_id)

    def morphemes(self) -> Iterator[list[str]]:
        """The forms of each text, in order."""
        return (forms for (forms,) in self._columns("morphemes"))

    def _columns(self, *names: str) -> Iterator[tuple[Any, ...]]:
        for name, texts in self._parts:
            path = self._find(name)
            if path is None:
                raise ArtifactError(f"{self._folder}: the analysis of {len(texts):,} texts is gone: run this again")
            table = pq.read_table(path, columns=list(names))
            yield from zip(*(table[column].to_pylist() for column in names), strict=True)


def _content(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _encode(texts: Sequence[str], tokenizer: Tokenizer, workers: int) -> memoryview:
    """One part, as the bytes of a Parquet file."""
    rows = []
    for text, analysis in zip(texts, tokenizer.analyzer.analyze_many(texts, workers=workers), strict=True):
        pieces = tokenizer.pieces(analysis, text)
        rows.append({"input_ids": pieces.ids, "boundaries": pieces.boundaries, "morphemes": analysis.forms})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), sink, compression="zstd")
    return memoryview(sink.getvalue())
