"""Texts as pieces with spans, and conversion between character and piece positions."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from korbert.system import Advance, track, untracked
from korbert.tokenization import AnyTokenizer, Frame, PieceArrays, Pieces, collection_paused, span_of, span_to_pieces

MANY_TEXTS = 500  # above this Kiwi's threads pay off, although its model is loaded again


@dataclass(frozen=True, slots=True)
class Passage:
    """A text and its P pieces, without special tokens.

    ids: (P,) int32; boundaries: (P,) uint8, what begins at the piece; spans: (P, 2) int32, half-open, in code points.
    """

    text: str
    ids: np.ndarray
    boundaries: np.ndarray
    spans: np.ndarray

    @classmethod
    def of_pieces(cls, text: str, pieces: Pieces) -> Self:
        """Converts pieces to arrays."""
        return cls(
            text,
            np.array(pieces.ids, dtype=np.int32),
            np.array(pieces.boundaries, dtype=np.uint8),
            np.array(pieces.spans, dtype=np.int32).reshape(-1, 2),
        )

    def part(self, first: int, last: int) -> "PieceArrays":
        """The pieces [first, last)."""
        return self.ids[first:last], self.boundaries[first:last]

    def window(self, start: int, size: int) -> "Passage":
        """The pieces [start, start + size) as a passage of the same text."""
        part = slice(start, start + size)
        return Passage(self.text, self.ids[part], self.boundaries[part], self.spans[part])

    def joined(self, other: "Passage") -> "Passage":
        """This text, followed by the other one without a space."""
        return Passage(
            self.text + other.text,
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.boundaries, other.boundaries]),
            np.concatenate([self.spans, other.spans + len(self.text)]),
        )


def join_segments(frame: Frame, *parts: PieceArrays) -> tuple[NDArray[np.int32], NDArray[np.uint8], int]:
    """Joins segments to [CLS] A [SEP], or to [CLS] A [SEP] B [SEP].

    Returns ids, boundaries, and where B begins; without B, the length.
    """
    separators = [frame.between] * (len(parts) - 1) + [1]
    ids = [np.array([frame.cls_id])]
    boundaries = [np.zeros(1, np.uint8)]
    for part, count in zip(parts, separators, strict=True):
        ids += [part[0], np.full(count, frame.sep_id)]
        boundaries += [part[1], np.zeros(count, np.uint8)]
    return np.concatenate(ids), np.concatenate(boundaries), 1 + len(parts[0][0]) + separators[0]


def encode_passages(tokenizer: AnyTokenizer, texts: Sequence[str], *, workers: int = 1) -> list[Passage]:
    """Encodes texts as pieces with spans, in order; EncodedTexts also caches them.

    workers: threads for Kiwi, used for many texts.
    """
    progress: AbstractContextManager[Advance] = nullcontext(untracked)
    if len(texts) > MANY_TEXTS:
        progress = track("encode", len(texts), "texts")
    else:
        workers = 0
    passages = []
    with progress as advance, collection_paused():
        for text, pieces in zip(texts, tokenizer.pieces_of_many(texts, workers=workers), strict=True):
            passages.append(Passage.of_pieces(text, pieces))
            advance(1)
    return passages


def pieces_of_span(passage: Passage, start: int, end: int) -> tuple[int, int] | None:
    """First and last piece (inclusive) of the shortest sequence that covers characters [start, end), or None."""
    return span_to_pieces([tuple(span) for span in passage.spans.tolist()], start, end)


def span_of_pieces(spans: np.ndarray, first: int, last: int) -> tuple[int, int]:
    """Character span of pieces first to last (inclusive). spans: (P, 2); see encoding.span_of."""
    return span_of(spans[first : last + 1].tolist(), 0, last - first)
