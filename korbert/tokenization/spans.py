"""Which characters each piece of a morpheme stands for."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from korbert.tokenization.repair import repair

__all__ = ["piece_spans", "runs_within", "slices"]

_Span = tuple[int, int]


def slices(form: str, sizes: Sequence[int]) -> list[_Span]:
    """The characters of a form that each of its pieces stands for. sizes: bytes of UTF-8 that each piece takes.

    All pieces that are bytes of one character have that character. White space has no bytes in pieces, a mark none.
    """
    owners = [place for place, char in enumerate(form) if not char.isspace() for _ in char.encode()]  # by byte
    found: list[_Span] = []
    begin = 0
    for size in sizes:
        end = begin + size
        first = owners[begin] if begin < len(owners) else len(form)
        found.append((first, owners[end - 1] + 1) if end > begin else (first, first))
        begin = end
    return found


def piece_spans(form: str, cuts: Sequence[_Span], start: int, surface: str) -> list[_Span]:
    """One span in the text for each piece: its own characters, or all of them where the form is no slice of the text.

    cuts: as `slices` gives them. surface: the characters of the morpheme, which begin at `start`.
    """
    if surface == form:
        return [(start + low, start + high) for low, high in cuts]
    repaired = repair(surface)
    if repaired is not None and repaired.text == form:
        parts = (repaired.span(low, high) for low, high in cuts)
        return [(start + low, start + high) for low, high in parts]
    return [(start, start + len(surface))] * len(cuts)


def runs_within(spans: Sequence[_Span], stretches: Sequence[_Span]) -> list[_Span] | None:
    """Which spans make up each stretch of the text: (first, behind the last). None where a span lies partly in one, or
    where a stretch has none. Both in the order of the text, though within a contraction spans step back.
    """
    starts = list(accumulate((start for start, _ in reversed(spans)), min))[::-1]  # of each or a later one
    ends = list(accumulate((end for _, end in spans), max))  # of each or an earlier one
    found = []
    for start, end in stretches:
        first, last = bisect_right(ends, start), bisect_left(starts, end)
        if first >= last or starts[first] < start or ends[last - 1] > end:
            return None
        found.append((first, last))
    return found
