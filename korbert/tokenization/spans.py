"""The characters that each piece of a morpheme stands for. Part of exported folders, as morphemes.py says."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from korbert.tokenization.repair import repair

_Span = tuple[int, int]


def slices(form: str, sizes: Sequence[int]) -> list[_Span]:
    """The characters of a form that each of its pieces stands for. sizes: UTF-8 bytes of each piece.

    Pieces that are bytes of one character all have that character. White space of the form has no piece, and a mark no
    character.
    """
    owners = [index for index, char in enumerate(form) if not char.isspace() for _ in char.encode()]  # by byte
    spans: list[_Span] = []
    begin = 0
    for size in sizes:
        end = begin + size
        first = owners[begin] if begin < len(owners) else len(form)
        spans.append((first, owners[end - 1] + 1) if end > begin else (first, first))
        begin = end
    return spans


def piece_spans(form: str, cuts: Sequence[_Span], start: int, surface: str) -> list[_Span]:
    """The span of each piece in the text: its own characters, or the whole morpheme where its form is no slice of it.

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
    """The run of spans that makes up each stretch of the text: (first, behind the last). None where a span lies partly
    in a stretch, or a stretch has no span. Both are in the order of the text, but spans step back in contractions.
    """
    starts = list(accumulate((start for start, _ in reversed(spans)), min))[::-1]  # of each or a later one
    ends = list(accumulate((end for _, end in spans), max))  # of each or an earlier one
    runs = []
    for start, end in stretches:
        first, last = bisect_right(ends, start), bisect_left(starts, end)
        if first >= last or starts[first] < start or ends[last - 1] > end:
            return None
        runs.append((first, last))
    return runs
