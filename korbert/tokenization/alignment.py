"""Finds the character spans of pieces for tokenizers without offsets, by matching pieces with the text.

Text and pieces are compared folded: compatibility forms decomposed (NFKD), in lower case, without accents, control and
format characters, which undoes what tokenizers do to single characters. If a tokenizer replaces a word with
another, its pieces are not found.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from korbert.tokenization.pieces import Span

__all__ = ["align", "trimmed"]

_DROPPED = ("Mn", "Cc", "Cf")  # accents, control and format characters


def align(text: str, pieces: Sequence[str], unknown: str | None, *, continuation: str = "") -> list[Span]:
    """The span of each piece, in their order.

    unknown: the piece that stands for anything, at most one word (between white space). Several in a row have a word
    each where their number is that of the words between their neighbours, and otherwise all of it. A piece that is not
    found in its own word, or behind the words of the unknown ones, counts as unknown. Characters that folding drops
    belong to the piece before. continuation: what pieces inside words begin with ("##"), "" for vocabularies that mark
    the beginning of words instead; behind an unknown piece, others are then looked for where a word may begin.
    """
    folded, owners, words = _folded_text(text)
    spans: list[Span] = [(0, 0)] * len(pieces)
    pending: list[int] = []  # unknown pieces before the one being searched for
    cursor = 0
    for number, piece in enumerate(pieces):
        if piece == unknown:
            pending.append(number)
            continue
        wanted = _folded(_bare(piece, continuation))
        if not wanted:  # a mark alone
            here = owners[cursor] if cursor < len(owners) else len(text)
            spans[number] = (here, here)
            continue
        inner = not (pending and continuation) or piece.startswith(continuation)
        limit = _limit(words, cursor, len(pending))
        where = {"behind": bool(pending), "inner": inner}
        begin = _find(folded, wanted, cursor, limit, words, **where)
        if begin < 0:
            pending.append(number)
            continue
        _spread(spans, pending, text, owners, words, cursor, begin)
        cursor, pending = begin + len(wanted), []
        spans[number] = _span(text, owners, begin, cursor)
    _spread(spans, pending, text, owners, words, cursor, len(folded))
    return spans


def trimmed(text: str, start: int, end: int) -> Span:
    """The span without white space at its ends; if nothing is left, the empty span after it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _folded_text(text: str) -> tuple[str, list[int], list[int]]:
    """The folded text without white space; of each of its characters the place in the text, and the word."""
    folded: list[str] = []
    owners: list[int] = []
    words: list[int] = []
    word, within = -1, False
    for place, char in enumerate(text):
        if char.isspace():
            within = False
            continue
        if not within:
            word, within = word + 1, True
        for one in _folded(char):
            folded.append(one)
            owners.append(place)
            words.append(word)
    return "".join(folded), owners, words


@lru_cache(maxsize=65_536)
def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).lower())
    return "".join(char for char in decomposed if not char.isspace() and unicodedata.category(char) not in _DROPPED)


def _bare(piece: str, continuation: str) -> str:
    """A piece without the markers of vocabularies: ##, @@, </w> and SentencePiece's ▁."""
    if continuation and piece != continuation:
        piece = piece.removeprefix(continuation)
    if piece != "@@":
        piece = piece.removesuffix("@@")
    return piece.removesuffix("</w>").replace("▁", "")


def _limit(words: Sequence[int], cursor: int, more: int) -> int:
    """The end of the word of the next character, or of the word `more` words later."""
    if cursor >= len(words):
        return cursor
    last = words[cursor] + more
    end = cursor
    while end < len(words) and words[end] <= last:
        end += 1
    return end


def _find(folded: str, wanted: str, cursor: int, limit: int, words: Sequence[int], *, behind: bool, inner: bool) -> int:
    """The first place of `wanted` in folded[cursor:limit], -1 without one.

    behind: prefer a match after the cursor, as an unknown piece lies between. inner: also inside words.
    """
    begin = folded.find(wanted, cursor + behind, limit)
    while begin > cursor and not inner and not _may_begin(folded, begin, words):
        begin = folded.find(wanted, begin + 1, limit)
    return begin if begin >= 0 or not behind else folded.find(wanted, cursor, cursor + len(wanted))


def _may_begin(folded: str, place: int, words: Sequence[int]) -> bool:
    """Whether a word of BERT's tokenizers may begin here: behind white space, and at and behind other than letters."""
    return words[place] != words[place - 1] or not (folded[place].isalnum() and folded[place - 1].isalnum())


def _spread(
    spans: list[Span],
    numbers: Sequence[int],
    text: str,
    owners: Sequence[int],
    words: Sequence[int],
    begin: int,
    end: int,
) -> None:
    """Distributes the folded characters from begin to end over unknown pieces."""
    places = range(begin, end)
    starts = [place for place in places if place == begin or words[place] != words[place - 1]]
    for number, first, behind in zip(numbers, starts, [*starts[1:], end], strict=False):
        spans[number] = _span(text, owners, first, behind)
    if len(starts) != len(numbers):
        here = owners[begin] if begin < len(owners) else len(text)
        whole = _span(text, owners, begin, end) if starts else (here, here)
        for number in numbers:
            spans[number] = whole


def _span(text: str, owners: Sequence[int], begin: int, end: int) -> Span:
    """The original characters of folded ones from begin to end, with dropped characters after them."""
    start, stop = owners[begin], owners[end - 1] + 1
    while stop < len(text) and not text[stop].isspace() and not _folded(text[stop]):
        stop += 1
    return start, stop
