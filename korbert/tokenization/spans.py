"""Which characters each piece of a morpheme stands for."""

from collections.abc import Sequence
from itertools import accumulate

from korbert.tokenization.repair import repair

__all__ = ["bounds", "piece_spans", "slices"]

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


def bounds(spans: Sequence[_Span]) -> tuple[list[int], list[int]]:
    """Where at the earliest each span or a later one begins, and where at the latest each or an earlier one ends.

    Both are sorted, as bisection needs them. The spans alone are not: within a contraction they step back.
    """
    starts = [start for start, _ in reversed(spans)]
    return list(accumulate(starts, min))[::-1], list(accumulate((end for _, end in spans), max))
