"""The tokenizer interface of tasks and models: Tokenizer (ours) and TransformersTokenizer have it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, overload

from korbert.tokenization.analyzer import Analyzer
from korbert.tokenization.encoding import Encoding, Frame
from korbert.tokenization.morphemes import Analysis
from korbert.tokenization.pieces import Pieces

__all__ = ["AnyTokenizer"]


class AnyTokenizer(Protocol):
    """Texts to ids and spans, and back. Methods do what those of the same name in Tokenizer do.

    cls_id and sep_id stand around a text. unk_id, mask_id: -1 where there is no such piece. digest: SHA-256 (hex) over
    all that decides ids. frame: the special tokens around texts and pairs.
    """

    digest: str

    @property
    def pad_id(self) -> int: ...
    @property
    def unk_id(self) -> int: ...
    @property
    def cls_id(self) -> int: ...
    @property
    def sep_id(self) -> int: ...
    @property
    def mask_id(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def frame(self) -> Frame: ...
    @property
    def analyzer(self) -> Analyzer: ...

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

    def encode_pieces(self, text: str, *, special_tokens: bool = False) -> Pieces: ...
    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        max_length: int | None = None,
        workers: int = 1,
    ) -> list[Encoding]: ...
    def pieces_of_many(self, texts: Iterable[str], *, workers: int = 1) -> Iterator[Pieces]: ...
    def pieces(self, analysis: Analysis, text: str | None) -> Pieces: ...
    def tokens(self, ids: Iterable[int]) -> list[str]: ...
    def decode(self, ids: Sequence[int], boundaries: Sequence[int] | None = None) -> str: ...
    def save(self, folder: str | Path) -> None: ...
