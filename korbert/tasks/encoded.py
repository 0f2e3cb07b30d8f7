"""Texts analysed once: the pieces and the morphemes of each, in Parquet parts that later runs find again."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from korbert.durable import write_whole
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
    """The pieces and the morphemes of a list of texts, in files `texts-<digest>.parquet` of a folder.

    The digest is over texts and tokenizer, so that a part that is there is the right one, whoever made it.
    """

    def __init__(self, folder: Path, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        parts = [texts[start : start + _PART_TEXTS] for start in range(0, len(texts), _PART_TEXTS)]
        self._parts = [(folder / f"texts-{digest_of(tokenizer, part)}.parquet", part) for part in parts]

    def make(self, workers: int, description: str = "analyze") -> None:
        """Analyses what has not been analysed yet, on that many threads."""
        with track(description, total=sum(len(texts) for _, texts in self._parts), unit="texts") as advance:
            for path, texts in self._parts:
                if not _is_whole(path, len(texts)):
                    write_whole(path, _encode(texts, self._tokenizer, workers))
                advance(len(texts))

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
        for path, _ in self._parts:
            table = pq.read_table(path, columns=list(names))
            yield from zip(*(table[name].to_pylist() for name in names), strict=True)


def _is_whole(path: Path, count: int) -> bool:
    """Whether a part is there and can be read."""
    try:
        return bool(pq.read_metadata(path).num_rows == count)
    except (OSError, pa.ArrowInvalid):
        return False


def _encode(texts: Sequence[str], tokenizer: Tokenizer, workers: int) -> memoryview:
    """One part, as the bytes of a Parquet file."""
    rows = []
    for text, analysis in zip(texts, tokenizer.analyzer.analyze_many(texts, workers=workers), strict=True):
        pieces = tokenizer.pieces(analysis, text)
        rows.append({"input_ids": pieces.ids, "boundaries": pieces.boundaries, "morphemes": analysis.forms})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), sink, compression="zstd")
    return memoryview(sink.getvalue())
