"""Special tokens that stand in a text, such as "[MASK]", where a caller wants them as what they are called."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from korbert.tokenization.encoding import CONTINUATION, EOJEOL, MORPHEME, SENTENCE, Pieces, Span
from korbert.tokenization.spans import runs_within
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
    # By morphemes: the mark that begins one is a piece without characters, which would be left standing.
    firsts = [place for place, level in enumerate(found.boundaries) if level != CONTINUATION]
    bounds = [*firsts, len(found)]
    runs = runs_within([(found.spans[low][0], found.spans[high - 1][1]) for low, high in pairwise(bounds)], specials)
    if runs is None:
        return _encode_between(text, specials, encode)
    parts = []
    begin = 0
    for span, (first, last) in zip(specials, runs, strict=True):
        place = bounds[first]
        parts.append(found[begin:place])
        parts.append(_special(text, span, found.boundaries[place], found.morphemes[place]))
        begin = bounds[last]
    return Pieces.joined([*parts, found[begin:]])


def _encode_between(text: str, specials: Sequence[Span], encode: Callable[[str], Pieces]) -> Pieces:
    """The special tokens, and what stands between them as `encode` gives it of each stretch."""
    parts: list[Pieces] = []
    begin = morphemes = 0
    for start, end in [*specials, (len(text), len(text))]:
        between = encode(text[begin:start])
        if between:
            spans = [(begin + low, begin + high) for low, high in between.spans]
            levels = [_level(text, spans[0][0]), *between.boundaries[1:]]
            numbers = [morphemes + number for number in between.morphemes]
            parts.append(Pieces(between.ids, between.pieces, levels, spans, numbers, between.tags))
            morphemes = numbers[-1] + 1
        if start < end:
            parts.append(_special(text, (start, end), _level(text, start), morphemes))
            morphemes += 1
        begin = end
    found = Pieces.joined(parts)
    found.boundaries[0] = SENTENCE
    return found


def _special(text: str, span: Span, level: int, morpheme: int) -> Pieces:
    token = text[slice(*span)]
    return Pieces([SPECIAL.index(token)], [token], [level], [span], [morpheme], ["SW"])


def _level(text: str, start: int) -> int:
    """What begins at a character behind others, as far as the text tells."""
    return EOJEOL if text[start - 1].isspace() else MORPHEME
