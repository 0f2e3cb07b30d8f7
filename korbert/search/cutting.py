"""Where a long text is cut into passages: at ends of sentences, each with the last sentence of the one before."""

from collections.abc import Sequence

from korbert.tokenization import Pieces

PASSAGE_PIECES = 200
_ENDS = ("SF", "EF", "SSC", "SSO", "SW")  # tags before a sentence: to Kiwi each line begins one, in its middle, too


def sentences_of(text: str, pieces: Pieces, begins: Sequence[int], tags: Sequence[str]) -> list[int]:
    """The numbers of the pieces at which sentences begin: after the end of one, or after a blank line.

    begins: numbers of the pieces that may begin one, rising. tags: of the morpheme before each.
    """
    return [
        at
        for at, tag in zip(begins, tags, strict=True)
        if tag in _ENDS or text.count("\n", pieces.spans[at - 1][1], pieces.spans[at][0]) > 1
    ]


def cut(sentences: Sequence[int], boundaries: Sequence[int], eojeol: int, size: int) -> list[tuple[int, int]]:
    """First piece, and last piece + 1, of each passage of a text: of up to `size` pieces.

    sentences: numbers of the pieces at which sentences begin, rising. boundaries: of each piece, `eojeol` at least
    where one begins. A longer sentence is cut at an eojeol in the second half of its room, or where the room ends.
    """
    bounds = [0]
    for end in [*sentences, len(boundaries)]:
        while (latest := bounds[-1] + size) < end:
            later_half = range(latest, latest - size // 2, -1)
            bounds.append(next((at for at in later_half if boundaries[at] >= eojeol), latest))
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
