"""Finds the character spans of pieces for tokenizers without offsets, by matching pieces with the text.

Text and pieces are compared folded: compatibility forms decomposed (NFKD), in lower case, without accents, control and
format characters, which undoes what tokenizers do to single characters. If a tokenizer replaces a word with
another, its pieces are not found.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from korbert.tokenization.pieces import Span

_DROPPED = ("Mn", "Cc", "Cf")  # accents, control and format characters
_MARKERS = re.compile("^##(?=.)|(?<=.)@@$|</w>$|▁")  # of vocabularies, inside words, at their ends and beginnings


def align(text: str, pieces: Sequence[str], unknown: str | None) -> list[Span]:
    """The span of each piece, in their order.

    unknown: the piece that stands for anything, at most one word (between white space). Several in a row have a word
    each where their number is that of the words between their neighbours, and otherwise all of it. A piece that is not
    found in its own word, or behind the words of the unknown ones, counts as unknown. Characters that folding drops
    belong to the piece before.
    """
    target = _FoldedText(text)
    spans: dict[int, Span] = {}
    pending: list[int] = []  # unknown pieces before the next one that is found, at the cursor or later
    cursor = 0
    for index, piece in enumerate(pieces):
        wanted = _folded(_MARKERS.sub("", piece))
        if not wanted and piece != unknown:  # a marker alone
            spans[index] = target.empty_span(cursor)
            continue
        begin = -1 if piece == unknown else target.find(wanted, cursor, len(pending))
        if begin < 0:
            pending.append(index)
            continue
        spans.update(zip(pending, target.unknown_spans(len(pending), cursor, begin), strict=True))
        pending, cursor = [], begin + len(wanted)
        spans[index] = target.span(begin, cursor)
    spans.update(zip(pending, target.unknown_spans(len(pending), cursor, len(target.chars)), strict=True))
    return [spans[index] for index in range(len(pieces))]


def trimmed(text: str, start: int, end: int) -> Span:
    """The span without white space at its ends; if nothing is left, the empty span after it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


class _FoldedText:
    """A text, folded and without white space. origins, words: of each folded character, its index in the text, and the
    word that it is of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.origins: list[int] = []
        self.words: list[int] = []
        chars: list[str] = []
        for word, match in enumerate(re.finditer(r"\S+", text)):
            for index, char in enumerate(match.group(), match.start()):
                folded = _folded(char)
                chars += folded
                self.origins += [index] * len(folded)
                self.words += [word] * len(folded)
        self.chars = "".join(chars)

    def find(self, wanted: str, cursor: int, unknowns: int) -> int:
        """Where a piece begins behind unknown ones, each of at most a word; -1: nowhere.

        Behind unknown pieces a match after the cursor is preferred, as they stand for something.
        """
        limit = bisect_right(self.words, self.words[cursor] + unknowns) if cursor < len(self.words) else cursor
        begin = self.chars.find(wanted, cursor + (unknowns > 0), limit)
        return begin if begin >= 0 or not unknowns else self.chars.find(wanted, cursor, cursor + len(wanted))

    def unknown_spans(self, count: int, begin: int, end: int) -> list[Span]:
        """The folded characters from begin to end, distributed over unknown pieces."""
        starts = [at for at in range(begin, end) if at == begin or self.words[at] != self.words[at - 1]]
        if len(starts) == count:
            return [self.span(*bounds) for bounds in pairwise([*starts, end])]
        return [self.span(begin, end) if starts else self.empty_span(begin)] * count

    def empty_span(self, at: int) -> Span:
        start = self.origins[at] if at < len(self.origins) else len(self.text)
        return start, start

    def span(self, begin: int, end: int) -> Span:
        """The original characters of folded ones from begin to end, with dropped characters after them."""
        start, stop = self.origins[begin], self.origins[end - 1] + 1
        while stop < len(self.text) and not self.text[stop].isspace() and not _folded(self.text[stop]):
            stop += 1
        return start, stop


@lru_cache(maxsize=65_536)
def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).lower())
    return "".join(char for char in decomposed if not char.isspace() and unicodedata.category(char) not in _DROPPED)
