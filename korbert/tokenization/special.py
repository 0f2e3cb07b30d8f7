"""Encodes "[MASK]" and the like in a text as special tokens instead of characters, for callers that ask for it.

Part of exported folders, as morphemes.py says.
"""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise

from korbert.tokenization.pieces import CONTINUATION, EOJEOL, MORPHEME, SENTENCE, Pieces, Span
from korbert.tokenization.spans import runs_within


def encode_with_special(text: str, encode: Callable[[str], Pieces], ids: Mapping[str, int]) -> Pieces:
    """The pieces of a text as `encode` gives them, but each special token in it is one piece. ids: of these tokens.

    The text is analyzed whole, so that Kiwi sees both sides of a gap, and the special tokens replace the morphemes
    that Kiwi took them for. Where one is part of a morpheme (https://example.com/[MASK]), the stretches between the
    special tokens are analyzed one by one.
    """
    longest_first = sorted(ids, key=len, reverse=True)
    specials = [match.span() for match in re.finditer("|".join(map(re.escape, longest_first)), text)]
    whole = encode(text)
    # Runs of morphemes, not of pieces: the mark of the first one is a piece without characters, which must go, too.
    bounds = [*(index for index, level in enumerate(whole.boundaries) if level != CONTINUATION), len(whole)]
    spans = [(whole.spans[first][0], whole.spans[behind - 1][1]) for first, behind in pairwise(bounds)]
    runs = runs_within(spans, specials)
    parts: list[Pieces] = []
    if runs is not None:
        begin = 0
        for span, (first, behind) in zip(specials, runs, strict=True):
            end = bounds[first]
            parts += whole[begin:end], _special(text, span, ids, whole.boundaries[end], whole.morphemes[end])
            begin = bounds[behind]
        return Pieces.joined([*parts, whole[begin:]])
    begin = morphemes = 0
    for start, end in [*specials, (len(text), len(text))]:
        if between := encode(text[begin:start]):
            between.spans = [(begin + low, begin + high) for low, high in between.spans]
            between.boundaries[0] = _level(text, between.spans[0][0])
            between.morphemes = [morphemes + number for number in between.morphemes]
            morphemes = between.morphemes[-1] + 1
            parts.append(between)
        if start < end:
            parts.append(_special(text, (start, end), ids, _level(text, start), morphemes))
            morphemes += 1
        begin = end
    pieces = Pieces.joined(parts)
    pieces.boundaries[0] = SENTENCE
    return pieces


def _special(text: str, span: Span, ids: Mapping[str, int], level: int, morpheme: int) -> Pieces:
    token = text[slice(*span)]
    return Pieces([ids[token]], [token], [level], [span], [morpheme], ["SW"])


def _level(text: str, start: int) -> int:
    """What begins at a character behind others, as far as the text tells."""
    return EOJEOL if text[start - 1].isspace() else MORPHEME
