"""Text made fit for Kiwi, with the way back to the characters as given.

Kiwi takes an NFD eojeol for one unknown noun, adds tokens at zero-width characters inside words, raises at lone
surrogates, and its time grows with the square of a run without spaces. None of this is visible in the result: spans
are of the text as it was given.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["MAX_RUN", "Repaired", "cut", "repair"]

_MAX_CHARS = 10_000  # of a unit: longer lines are cut at white space
MAX_RUN = 500  # characters without white space: longer runs are cut where no character is torn
_MAX_STEP_BACK = 32  # how far before MAX_RUN a run is cut so as to tear no character

# What Kiwi must not see. All else goes to it as it is.
_ODD = re.compile("[\x1c-\x1f\u00ad\u200b-\u200f\u2060\u2800\ufeff\ud800-\udfff]")
_INVISIBLE = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
_BLANK = frozenset("\x1c\x1d\x1e\x1f\u2800")  # white space to Python or to Kiwi, not to both
_JOINED = re.compile("[©®‼-㊙\ufe0f\U0001f000-\U0001faff]\u200d(?=[←-⯿\U0001f000-\U0001faff])")  # a joiner in an emoji
_RUN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Repaired:
    """Text for Kiwi. Its character i stands for the characters [starts[i], ends[i]) of the text as given."""

    text: str
    starts: list[int]
    ends: list[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters as given behind [start, end) of the repaired text."""
        if start < end:
            return self.starts[start], self.ends[end - 1]
        place = self.starts[start] if start < len(self.starts) else self.ends[-1] if self.ends else 0
        return place, place


def repair(text: str) -> Repaired | None:
    """NFC without invisible characters and lone surrogates; None where the text is fit as it is (nearly always)."""
    if not _ODD.search(text) and unicodedata.is_normalized("NFC", text):
        return None
    joiners = {match.end() - 1 for match in _JOINED.finditer(text)}
    places = [place for place, char in enumerate(text) if char not in _INVISIBLE or place in joiners]
    chars = [_fit(text[place]) for place in places]
    if unicodedata.is_normalized("NFC", "".join(chars)):
        return Repaired("".join(chars), places, [place + 1 for place in places])
    return _composed(chars, places)


def _fit(char: str) -> str:
    if char in _BLANK:
        return " "
    return "\ufffd" if "\ud800" <= char <= "\udfff" else char


def _composed(chars: list[str], places: list[int]) -> Repaired:
    """NFC of the characters, cluster by cluster, so that each character knows where it came from."""
    text: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for begin, end in _clusters(chars):
        composed = unicodedata.normalize("NFC", "".join(chars[begin:end]))
        taken = max(0, end - begin - len(composed))  # into the first one; the others follow one by one
        for number, char in enumerate(composed):
            source = min(begin + number + taken, end - 1)
            text.append(char)
            starts.append(places[source if number else begin])
            ends.append(places[source] + 1)
    return Repaired("".join(text), starts, ends)


def _clusters(chars: list[str]) -> Iterator[tuple[int, int]]:
    """Where the text may be cut so that the NFC of the parts is the NFC of the whole."""
    begin = 0
    for place in range(1, len(chars)):
        char = chars[place]
        if unicodedata.combining(char):
            continue
        if place - begin < 4 and char > "\x7f":  # no starter composes with more than three characters before it
            before = "".join(chars[begin:place])
            apart = unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", char)
            if unicodedata.normalize("NFC", before + char) != apart:
                continue
        yield begin, place
        begin = place
    if chars:
        yield begin, len(chars)


def cut(line: str) -> Iterator[tuple[int, str]]:
    """The parts of a line that Kiwi gets one by one: (where it begins, text). Nearly always the line itself."""
    if len(line) <= MAX_RUN or (len(line) <= _MAX_CHARS and max(map(len, line.split()), default=0) <= MAX_RUN):
        yield 0, line
        return
    begin = 0
    for run in _RUN.finditer(line):
        start, end = run.span()
        if end - start > MAX_RUN:
            if start > begin:
                yield begin, line[begin:start]
            for begin, stop in _slices(line, start, end):
                yield begin, line[begin:stop]
            begin = end
        elif end - begin > _MAX_CHARS:
            yield begin, line[begin:start]
            begin = start
    if begin < len(line):
        yield begin, line[begin:]


def _slices(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > MAX_RUN:
        stop = start + MAX_RUN
        while stop > start + MAX_RUN - _MAX_STEP_BACK and (_joins(line[stop]) or line[stop - 1] == "\u200d"):
            stop -= 1
        yield start, stop
        start = stop
    yield start, end


def _joins(char: str) -> bool:
    """Whether the character belongs to the one before it."""
    return (
        unicodedata.combining(char) > 0
        or "\u1160" <= char <= "\u11ff"  # jamo after the first of a syllable
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or char in "\u200d\ufe0f"
    )
