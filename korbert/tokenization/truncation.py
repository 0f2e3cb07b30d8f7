"""Encodes only the beginning of long texts, if a model reads no more."""

import re
from collections.abc import Sequence

from korbert.tokenization.base import AnyTokenizer
from korbert.tokenization.encoding import Encoding, assemble
from korbert.tokenization.pieces import Pieces
from korbert.tokenization.repair import MAX_RUN

_CHARS = 4  # characters per piece: Korean text has about two, so one try is nearly always enough
_MARGIN = 16  # pieces before a cut that are not used: what follows a morpheme helps to choose it
_SPACE = re.compile(r"\s")


def encode_beginnings(tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int) -> list[Encoding]:
    """As tokenizer.encode_batch with max_length, in time that does not grow with the length of texts."""
    short = [text for text in texts if len(text) <= _CHARS * max_length]
    encoded = iter(tokenizer.encode_batch(short, max_length=max_length, workers=0))
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
        space = _SPACE.search(text, chars, chars + MAX_RUN)
        pieces = tokenizer.encode_pieces(text[: space.start() if space else chars])
        if len(pieces) >= count + _MARGIN:
            return pieces
        chars *= 4
    return tokenizer.encode_pieces(text)
