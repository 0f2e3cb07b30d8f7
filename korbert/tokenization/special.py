"""Special tokens that stand in a text, such as "[MASK]", where a caller wants them as what they are called."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from korbert.tokenization.encoding import CONTINUATION, EOJEOL, MORPHEME, SENTENCE, Pieces, Span
from korbert.tokenization.spans import bounds
from korbert.tokenization.vocabulary import SPECIAL

__all__ = ["encode_with_special"]

_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))


def encode_with_special(text: str, encode: Callable[[str], Pieces]) -> Pieces:
    """What `encode` gives of a text, but each special token in it as one piece.

    The text is analysed whole, so that Kiwi sees what stands on both sides of a gap, and the morphemes that a special
    token was taken for give way. Where one was taken for part of a morpheme (https://example.com/[MASK]), what stands
    between the special tokens is analysed by itself.
    """
    found, specials = encode(text), [match.span() for match in _SPECIAL.finditer(text)]
    starts, ends = bounds(found.spans)
    parts = []
    begin = 0
    for start, end in specials:
        first, last = bisect_right(ends, start), bisect_left(starts, end)
        edges = found.boundaries[first : first + 1] + found.boundaries[last : last + 1]
        if first >= last or CONTINUATION in edges or starts[first] < start or ends[last - 1] > end:
            return _encode_between(text, specials, encode)
        parts.append(found[begin:first])
        parts.append(_special(text, (start, end), found.boundaries[first], found.morphemes[first]))
        begin = last
    return Pieces.joined([*parts, found[begin:]])


def _encode_between(text: str, specials: Sequence[Span], encode: Callable[[str], Pieces]) -> Pieces:
    """The special tokens, and what stands between them as `encode` gives it of each stretch."""
    parts: list[Pieces] = []
    begin = morphemes = 0
    for start, end in [*specials, (len(text), len(text))]:
        between = encode(text[begin:start])
        if between:
            spans = [(begin + low, begin + high) for low, high in between.spans]
            levels = [_level(text, spans[0][0]) if parts else SENTENCE, *between.boundaries[1:]]
            numbers = [morphemes + number for number in between.morphemes]
            parts.append(Pieces(between.ids, between.pieces, levels, spans, numbers, between.tags))
            morphemes = numbers[-1] + 1
        if start < end:
            level = _level(text, start) if parts else SENTENCE
            parts.append(_special(text, (start, end), level, morphemes))
            morphemes += 1
        begin = end
    return Pieces.joined(parts)


def _special(text: str, span: Span, level: int, morpheme: int) -> Pieces:
    token = text[slice(*span)]
    return Pieces([SPECIAL.index(token)], [token], [level], [span], [morpheme], ["SW"])


def _level(text: str, start: int) -> int:
    """What begins at a character behind others, as far as the text tells."""
    return EOJEOL if text[start - 1].isspace() else MORPHEME
