"""Cuts a long text into passages at ends of sentences.

A passage begins with the last sentence of the one before, if that sentence is short and leaves room for the next one.
"""

from collections.abc import Sequence

from korbert.tokenization import Pieces

PASSAGE_PIECES = 200
_ENDS = ("SF", "EF", "SSC", "SSO", "SW")  # tags before a sentence: to Kiwi each line begins one, in its middle, too


def sentences_of(text: str, pieces: Pieces, begins: Sequence[int], tags: Sequence[str]) -> list[int]:
    """Returns the numbers of the pieces at which sentences begin: after the end of a sentence, or after a blank line.

    begins: numbers of the pieces that may begin a sentence, rising. tags: of the morpheme before each of these pieces.
    """
    return [
        start
        for start, tag in zip(begins, tags, strict=True)
        if tag in _ENDS or text.count("\n", pieces.spans[start - 1][1], pieces.spans[start][0]) > 1
    ]


def cut(sentences: Sequence[int], boundaries: Sequence[int], eojeol: int, size: int) -> list[tuple[int, int]]:
    """Returns the first piece, and the last piece + 1, of each passage of a text. A passage has up to `size` pieces.

    sentences: numbers of the pieces at which sentences begin, rising. boundaries: the level of each piece, at least
    `eojeol` where an eojeol begins. A sentence of more than `size` pieces is cut before an eojeol in the second half of
    `size`, or else after `size` pieces.
    """
    bounds = [0]
    for end in [*sentences, len(boundaries)]:
        while (latest := bounds[-1] + size) < end:
            later_half = range(latest, latest - size // 2, -1)
            bounds.append(next((piece for piece in later_half if boundaries[piece] >= eojeol), latest))
        if end > bounds[-1]:
            bounds.append(end)
    passages = []
    begin = 0
    end = 1
    while True:
        while end + 1 < len(bounds) and bounds[end + 1] - bounds[begin] <= size:
            end += 1
        passages.append((bounds[begin], bounds[end]))
        if end + 1 >= len(bounds):
            return passages
        is_short = bounds[end] - bounds[end - 1] <= size // 2
        leaves_room = bounds[end + 1] - bounds[end - 1] <= size
        begin = end - 1 if end - begin > 1 and is_short and leaves_room else end
        end += 1
