"""What our tokenizer (tokenizer.py) and those of `transformers` (transformers_tokenizer.py) have in common."""

import gc
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.tokenization.analyzer import Analyzer
from korbert.tokenization.encoding import Encoding, Frame, assemble, windows
from korbert.tokenization.morphemes import Analysis
from korbert.tokenization.pieces import Pieces
from korbert.tokenization.repair import MAX_RUN

PieceArrays = tuple[NDArray[np.int32], NDArray[np.uint8]]
"""Ids and boundaries of pieces."""

_CHARS = 4  # characters per piece: Korean text has about two, so one try is nearly always enough
_MARGIN = 16  # pieces before a cut that are not used: what follows a morpheme helps to choose it


class AnyTokenizer(ABC):
    """Texts to ids and spans, and back.

    digest: SHA-256 (hex) over all that decides ids. vocab_size: every id is below it. cls_id and sep_id stand around a
    text. unk_id, mask_id: -1 where there is no such piece. frame: the special tokens around texts and pairs.
    """

    digest: str
    vocab_size: int
    pad_id: int
    unk_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    frame: Frame
    analyzer: Analyzer

    @overload
    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        max_length: int | None = None,
        stride: None = None,
        special_tokens: bool = False,
    ) -> Encoding: ...
    @overload
    def encode(
        self, text: str, pair: str | None = None, *, max_length: int, stride: int, special_tokens: bool = False
    ) -> list[Encoding]: ...
    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        max_length: int | None = None,
        stride: int | None = None,
        special_tokens: bool = False,
    ) -> Encoding | list[Encoding]:
        """A text or a pair of texts with the special tokens around: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP].

        max_length: in pieces, special tokens included; of a pair, the longer text loses its last pieces first. stride:
        return all windows over the last text instead, which overlap by that many pieces. special_tokens: "[MASK]" and
        the like in a text are these tokens; otherwise they are text. Raises SettingsError for a max_length or stride
        that leaves no room.
        """
        first = self.encode_pieces(text, special_tokens=special_tokens)
        second = None if pair is None else self.encode_pieces(pair, special_tokens=special_tokens)
        if stride is None:
            return assemble(first, second, self.frame, max_length)
        if max_length is None:
            raise SettingsError("stride {stride} without max_length: say how long a window may be", stride=stride)
        return windows(first, second, self.frame, max_length, stride)

    @abstractmethod
    def encode_pieces(self, text: str, *, special_tokens: bool = False) -> Pieces:
        """The pieces of a text without special tokens around. special_tokens: as in encode."""

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        max_length: int | None = None,
        workers: int = 1,
    ) -> list[Encoding]:
        """The encode() of each text, in order.

        workers: threads of Kiwi, in addition to the caller's; 0: the caller's alone. Tokenizers of `transformers`
        ignore it, as they have threads of their own.
        """
        seconds = [None] * len(texts) if pairs is None else pairs
        if len(seconds) != len(texts):
            raise SettingsError(
                "{num_texts} texts and {num_seconds} pairs: give each text one, or None",
                num_texts=len(texts),
                num_seconds=len(seconds),
            )
        segments = chain.from_iterable(
            (text,) if pair is None else (text, pair) for text, pair in zip(texts, seconds, strict=True)
        )
        pieces = self.pieces_of_many(segments, workers=workers)
        encodings = []
        with collection_paused():
            for pair in seconds:
                first = next(pieces)
                second = None if pair is None else next(pieces)
                encodings.append(assemble(first, second, self.frame, max_length))
        return encodings

    @abstractmethod
    def pieces_of_many(self, texts: Iterable[str], *, workers: int = 1) -> Iterator[Pieces]:
        """The encode_pieces() of each text, in order; some hundred texts are read ahead. workers: as encode_batch."""

    @abstractmethod
    def pieces(self, analysis: Analysis, text: str) -> Pieces:
        """The pieces of an analyzed text, without special tokens. Tokenizers of `transformers` use no morphemes."""

    @abstractmethod
    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The piece of each id. Raises ModelError for an unknown id."""

    @abstractmethod
    def decode(self, ids: Sequence[int], boundaries: Sequence[int] | None = None) -> str:
        """Readable text, not the original. Never cut answers from this: cut the text by spans."""

    @abstractmethod
    def save(self, folder: str | Path) -> None:
        """Writes the files of the tokenizer. Same tokenizer: same bytes."""


def encode_beginnings(
    tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int, *, workers: int = 0
) -> list[Encoding]:
    """As tokenizer.encode_batch with max_length, in time that does not grow with the length of texts."""
    short_texts = [text for text in texts if len(text) <= _CHARS * max_length]
    encoded = iter(tokenizer.encode_batch(short_texts, max_length=max_length, workers=workers))
    return [
        next(encoded)
        if len(text) <= _CHARS * max_length
        else assemble(first_pieces(tokenizer, text, max_length), None, tokenizer.frame, max_length)
        for text in texts
    ]


def first_pieces(tokenizer: AnyTokenizer, text: str, count: int) -> Pieces:
    """The first pieces of a text, at least `count` if it has as many, without special tokens.

    The text is cut at white space well after them, and further on if that gives too few pieces.
    """
    chars = _CHARS * (count + _MARGIN)
    while chars < len(text):
        space = re.compile(r"\s").search(text, chars, chars + MAX_RUN)
        pieces = tokenizer.encode_pieces(text[: space.start() if space else chars])
        if len(pieces) >= count + _MARGIN:
            return pieces
        chars *= 4
    return tokenizer.encode_pieces(text)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pauses garbage collection: lists of pieces hold no cycles, but their number would trigger it over and over,
    which takes as long as creating them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
