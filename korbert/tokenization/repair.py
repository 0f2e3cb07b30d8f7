"""Text made fit for Kiwi, with the way back to the characters as given.

Kiwi takes an NFD eojeol for one unknown noun, and each syllable between spaces for a word, adds tokens at zero-width
characters inside words, raises at lone surrogates, and takes time quadratic in the length of a run without spaces. The
result shows nothing of this: spans are of the text as given. Part of exported folders, as morphemes.py says.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_CHARS = 10_000  # of a unit: longer lines are cut at white space
MAX_RUN = 500  # characters without white space: longer runs are cut where no character is torn
_MAX_STEP_BACK = 32  # characters before MAX_RUN, where a run may be cut to tear no character

# Characters that Kiwi must not see.
_ODD = re.compile("[\x1c-\x1f\u00ad\u200b-\u200f\u2060\u2800\ufeff\ud800-\udfff]")
# These are left out. No set: its order differs by process, and so would the hash of an exported tokenizer.
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_REPLACED = {
    **dict.fromkeys(map(ord, "\x1c\x1d\x1e\x1f\u2800"), " "),  # white space to Python or to Kiwi, not to both
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}
_JOINED = re.compile("[©®‼-㊙\ufe0f\U0001f000-\U0001faff]\u200d(?=[←-⯿\U0001f000-\U0001faff])")  # a joiner in an emoji
_RUN = re.compile(r"\S+")
# A syllable between spaces, but for the 60 that are four fifths of such words in 300,000 reviews and in Wikipedia.
_TORN = re.compile(
    r"(?<!\S)(?![이수그더한잘중좀본때두및등왜또다후내큰볼할난것참첫전된꼭데약안아꽤넘각뒤몇될세해굿총줄알뭐와건게못즉딱별존말])"
    r"[가-힣](?!\S)"
)
_LEAST_TORN = 2  # such syllables in a line
_SHARE_TORN = 0.2  # of its eojeols


@dataclass(frozen=True, slots=True)
class Repaired:
    """Text for Kiwi. Its character i stands for the characters [starts[i], ends[i]) of the text as given."""

    text: str
    starts: list[int]
    ends: list[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span in the text as given of [start, end) in the repaired text."""
        if start < end:
            return self.starts[start], self.ends[end - 1]
        at = self.starts[start] if start < len(self.starts) else self.ends[-1] if self.ends else 0
        return at, at


def repair(text: str) -> Repaired | None:
    """NFC without invisible characters and lone surrogates; None where the text is fit already (nearly always)."""
    if not _ODD.search(text) and unicodedata.is_normalized("NFC", text):
        return None
    joiners = {match.end() - 1 for match in _JOINED.finditer(text)}
    kept = [index for index, char in enumerate(text) if char not in _INVISIBLE or index in joiners]
    replaced = text.translate(_REPLACED)  # one character for one
    chars = [replaced[index] for index in kept]
    if unicodedata.is_normalized("NFC", "".join(chars)):
        return Repaired("".join(chars), kept, [index + 1 for index in kept])
    # NFC cluster by cluster, so that each character knows where it came from.
    composed: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for begin, end in _clusters(chars):
        cluster = unicodedata.normalize("NFC", "".join(chars[begin:end]))
        merged = max(0, end - begin - len(cluster))  # into the first character; the others follow one by one
        for number, char in enumerate(cluster):
            source = min(begin + number + merged, end - 1)
            composed.append(char)
            starts.append(kept[source if number else begin])
            ends.append(kept[source] + 1)
    return Repaired("".join(composed), starts, ends)


def has_torn_words(line: str) -> bool:
    """Whether spaces tear words apart: at least two lone syllables that are rare as words, and a fifth of the eojeols.

    True for 1 in 200 of NSMC's test reviews and 1 in 1,200 lines of Wikipedia; for 97 % of the reviews with a space
    between all letters, and 37 % with a fifth of the places changed (benchmarks/RESULTS.md, "Spacing").
    """
    torn = len(_TORN.findall(unicodedata.normalize("NFC", line)))
    return torn >= _LEAST_TORN and torn >= _SHARE_TORN * len(line.split())


def without_spaces(line: str) -> Repaired:
    """The line, repaired, without its white space."""
    repaired = repair(line) or Repaired(line, [*range(len(line))], [*range(1, len(line) + 1)])
    kept = [index for index, char in enumerate(repaired.text) if not char.isspace()]
    starts, ends = ([column[i] for i in kept] for column in (repaired.starts, repaired.ends))
    return Repaired("".join(repaired.text[i] for i in kept), starts, ends)


def _clusters(chars: list[str]) -> Iterator[tuple[int, int]]:
    """(begin, end) of parts such that the NFC of the parts is the NFC of the whole."""
    begin = 0
    for index, char in enumerate(chars[1:], 1):
        if unicodedata.combining(char):
            continue
        if index - begin < 4 and char > "\x7f":  # no starter composes with more than three characters before it
            before = "".join(chars[begin:index])
            apart = unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", char)
            if unicodedata.normalize("NFC", before + char) != apart:
                continue
        yield begin, index
        begin = index
    if chars:
        yield begin, len(chars)


def split_line(line: str) -> Iterator[tuple[int, str]]:
    """The parts of a line that Kiwi gets one by one, each with its place in the line; nearly always the line itself."""
    if len(line) <= MAX_RUN or (len(line) <= _MAX_CHARS and max(map(len, line.split()), default=0) <= MAX_RUN):
        yield 0, line
        return
    begin = 0
    for run in _RUN.finditer(line):
        start, end = run.span()
        if end - start > MAX_RUN:
            if start > begin:
                yield begin, line[begin:start]
            # Parts of a run without white space, that tear no character.
            while end - start > MAX_RUN:
                stop = start + MAX_RUN
                least = stop - _MAX_STEP_BACK
                while stop > least and (_belongs_before(line[stop]) or line[stop - 1] == "\u200d"):
                    stop -= 1
                yield start, line[start:stop]
                start = stop
            yield start, line[start:end]
            begin = end
        elif end - begin > _MAX_CHARS:
            yield begin, line[begin:start]
            begin = start
    if begin < len(line):
        yield begin, line[begin:]


def split_torn(line: str) -> Iterator[tuple[int, str]]:
    """As `split_line`, but in parts of at most MAX_RUN characters: more cannot go to Kiwi once spaces are left out."""
    for offset, part in split_line(line):
        begin = end = 0
        for run in _RUN.finditer(part):
            if run.end() - begin > MAX_RUN and end > begin:
                yield offset + begin, part[begin:end]
                begin = run.start()
            end = run.end()
        if end > begin:
            yield offset + begin, part[begin:end]


def _belongs_before(char: str) -> bool:
    """Whether the character belongs to the one before it."""
    return (
        unicodedata.combining(char) > 0
        or "\u1160" <= char <= "\u11ff"  # jamo after the first of a syllable
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or char in "\u200d\ufe0f"
    )
