"""Converts labels of characters and words to labels of pieces, and back.

Every visible character has one owner: of the pieces that cover it, the one that begins first. A piece that owns no
character is not used (ᆯ of 이걸, where 이거 owns both characters; the second byte of a rare character).

Spans: one BIO tag per piece. A piece has the label of the span that contains most of the characters it owns, the
earlier one among ties; O only if none of them is in a span. Back: from the first character that the first piece owns
to the last one that the last piece owns. So a span is reproduced exactly if it begins and ends at ownership
boundaries; otherwise it grows to the ends of its pieces, or is lost to a neighbour that shares a piece with it.

Words: the label of a word is trained and read at its first piece only (Devlin et al. 2019, 5.3).
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.files import LabelledSpan
from korbert.tasks.passages import Passage
from korbert.tasks.token_classification.bio import OUTSIDE, read_bio, split_tag, write_bio
from korbert.tokenization.pieces import Span


def owners(spans: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The K pieces of a text that own characters, in text order. spans: (P, 2), of all pieces.

    Returns their indices among all pieces, (K,), and the half-open spans of the characters that they own, (K, 2). Of
    pieces that begin together, the first one owns.

    방문한다, 방문 [0, 2), 하 [2, 3), ᆫ다 [2, 4): ᆫ다 owns [3, 4).
    """
    order = np.argsort(spans[:, 0], kind="stable")
    starts, ends = spans[order].astype(np.int64).T
    last_ends = np.maximum.accumulate(np.concatenate([[0], ends]))[:-1]  # of pieces that begin earlier
    runs = np.stack([np.maximum(starts, last_ends), ends], axis=1)
    owning = runs[:, 0] < runs[:, 1]
    return order[owning], runs[owning]


def piece_tags(labelled: Iterable[tuple[int, int, str]], passage: Passage) -> list[str]:
    """One BIO tag per piece, from spans in characters of the text.

    A piece that owns nothing continues the previous one: I-X after B-X and I-X, O after O. ValueError as write_bio.
    """
    spans = sorted(labelled)
    write_bio(spans, len(passage.text))  # raises for invalid spans
    span_of_char = np.full(len(passage.text), -1)
    for number, (start, end, _) in enumerate(spans):
        span_of_char[start:end] = number
    places, runs = owners(passage.spans)
    chosen: list[int] = []  # span of each owner, -1 if none
    for start, end in runs.tolist():
        counts = np.bincount(span_of_char[start:end] + 1)  # of no span, then of each span
        counts[0] = 0
        chosen.append(int(counts.argmax()) - 1)
    units: list[LabelledSpan] = []  # the same spans, counted in owners
    for number, group in groupby(range(len(chosen)), chosen.__getitem__):
        if number >= 0:
            first, *others = group
            units.append(LabelledSpan(first, first + len(others) + 1, spans[number][2]))
    tag_of = dict(zip(places.tolist(), write_bio(units, len(chosen)), strict=True))
    tags: list[str] = []
    for piece in range(len(passage.ids)):
        previous = tags[-1] if tags else OUTSIDE
        tags.append(tag_of.get(piece) or (previous if previous == OUTSIDE else f"I-{split_tag(previous)[1]}"))
    return tags


def eojeols(text: str) -> list[Span]:
    """Spans of eojeol, separated by white space."""
    return [word.span() for word in re.finditer(r"\S+", text)]


def spans_of_words(tags: Sequence[str], words: Sequence[Span]) -> list[LabelledSpan]:
    """Converts BIO tags of words to spans in characters of their text. words: the span of each."""
    return [LabelledSpan(words[first][0], words[last - 1][1], label) for first, last, label in read_bio(tags)]


def first_pieces(words: Sequence[Span], passage: Passage) -> list[int]:
    """Index of each word's first piece: the owner of its first owned character; -1 if it has none.

    Words that share a piece share their first piece.
    """
    places, runs = owners(passage.spans)
    pieces: list[int] = []
    for start, end in words:
        unit = int(np.searchsorted(runs[:, 1], start, side="right"))  # the first that ends after the start
        is_found = unit < len(places) and runs[unit, 0] < end and start < end
        piece = int(places[unit]) if is_found else -1
        pieces.append(piece)
    return pieces


def word_tags(labels: Sequence[str], words: Sequence[Span], passage: Passage) -> list[str | None]:
    """The label of each of the P pieces: that of the first word it begins, or None."""
    tags: list[str | None] = [None] * len(passage.ids)
    for label, piece in zip(labels, first_pieces(words, passage), strict=True):
        if piece >= 0 and tags[piece] is None:
            tags[piece] = label
    return tags
