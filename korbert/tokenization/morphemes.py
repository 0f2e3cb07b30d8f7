"""One text to morphemes: Kiwi with its options, the units of the text that it gets, and its tokens as an Analysis.

The text of this module is part of every exported folder, as are repair, spans, vocabulary and pieces: they import
one another, the standard library, and kiwipiepy where they use it.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from korbert.tokenization.repair import MAX_RUN, Repaired, cut, cut_torn, is_torn, repair, unspaced

_LOADING = ("model_type", "load_default_dict", "load_multi_dict", "integrate_allomorph")
_CALLING = ("split_complex", "z_coda", "typos")
_FIT = re.compile(f"[ -~ㄱ-ㅣ가-힣]{{1,{MAX_RUN}}}")  # a line that neither `cut` nor `repair` would change
_WORD, _SPACE = re.compile(r"\S+"), re.compile(r"\s")


@dataclass(slots=True)
class Analysis:
    """A text as morphemes: parallel lists, one entry a morpheme.

    forms, tags: 하/VV as Kiwi gives them. starts, ends: half-open spans in code points of the text as given; those of
    fused morphemes overlap (했: 하 [0, 1), 었 [0, 1)) or are empty. sentences: by Kiwi, a new one at every line.
    eojeols: by white space of the text; a line whose spaces tear words apart is one. Both are counted from 0.
    """

    forms: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    sentences: list[int] = field(default_factory=list)
    eojeols: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.forms)


class Unit(NamedTuple):
    """A stretch of a line that Kiwi gets in one call."""

    text: str
    offset: int  # of the unit in the text
    repaired: Repaired | None  # None: `text` is a slice of the text
    continues: bool  # the same line as the unit before: its sentence goes on
    torn: bool  # its spaces are left out, as they tear words apart


def load_kiwi(options: Mapping[str, Any], threads: int) -> Any:
    """Kiwi in 4 s and 0.5 GB. options: AnalyzerOptions as a tokenizer's record has them, without some defaults."""
    from kiwipiepy import Kiwi

    loading = {name: options[name] for name in _LOADING}
    if dialects := options.get("dialects"):
        loading["enabled_dialects"] = ",".join(dialects).upper()
    kiwi = Kiwi(num_workers=threads, **loading)
    kiwi.global_config.space_tolerance = options.get("space_tolerance", 0)
    for word in options.get("user_words", ()):
        kiwi.add_user_word(word["form"], word["tag"], word["score"])
    return kiwi


def call_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of each Kiwi.tokenize; options: as load_kiwi takes them."""
    calling = {name: options[name] for name in _CALLING if name in options}
    if dialects := options.get("dialects"):
        calling["allowed_dialects"] = ",".join(dialects).upper()
    return calling


def units_of(text: str) -> Iterator[Unit]:
    """What Kiwi gets of a text: its lines, without blank ones; nearly always each is one unit."""
    if _FIT.fullmatch(text) and not is_torn(text):
        yield Unit(text, 0, None, False, False)
        return
    offset = 0
    for line in text.split("\n"):
        continues, torn = False, is_torn(line)
        for begin, part in cut_torn(line) if torn else cut(line):
            if part and not part.isspace():
                repaired = unspaced(part) if torn else repair(part)
                yield Unit(part if repaired is None else repaired.text, offset + begin, repaired, continues, torn)
                continues = True
        offset += len(line) + 1


def tokens_of(units: list[Unit], kiwi: Any, calling: Mapping[str, Any]) -> list[list[Any]]:
    """Kiwi's tokens of each unit. Equal units are analyzed once: a run of 가 costs 20 s a megabyte."""
    if len(units) == 1:
        return [kiwi.tokenize(units[0].text, **calling)]
    tokens = {text: kiwi.tokenize(text, **calling) for text in dict.fromkeys(unit.text for unit in units)}
    return [tokens[unit.text] for unit in units]


def analyze(text: str, kiwi: Any, calling: Mapping[str, Any]) -> Analysis:
    """The morphemes of a text, on the caller's thread. kiwi, calling: from load_kiwi and call_options.

    Lists, as arrays would cost a short text more than half of Kiwi's own time; analyzer.py has many texts in columns.
    """
    forms: list[str] = []
    tags: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    sentences: list[int] = []
    units = list(units_of(text))
    for (_, offset, repaired, continues, _), tokens in zip(units, tokens_of(units, kiwi, calling), strict=True):
        first = sentences[-1] + (not continues) if sentences else 0
        for token in tokens:
            start, end = token.start, token.end
            if repaired is not None:
                start, end = repaired.span(start, end)
            forms.append(token.form)
            tags.append(sys.intern(token.tag))
            starts.append(offset + start)
            ends.append(offset + end)
            sentences.append(first + token.sent_position)
    later = eojeols_after(text, units)
    return Analysis(forms, tags, starts, ends, sentences, [bisect_right(later, start) for start in starts])


def without_torn_spaces(text: str, units: list[Unit]) -> str:
    """The text with other characters for spaces that tear words apart, by which eojeols are counted."""
    parts, end = [], 0
    for number, unit in enumerate(units, 1):
        if unit.torn and unit.repaired is not None and unit.repaired.ends:
            begin, inside = unit.offset, unit.offset + unit.repaired.ends[-1]
            if number < len(units) and units[number].continues:
                inside = units[number].offset
            parts += [text[end:begin], _SPACE.sub("_", text[begin:inside])]
            end = inside
    return "".join([*parts, text[end:]]) if parts else text


def eojeols_after(text: str, units: list[Unit] | None = None) -> list[int]:
    """Where each eojeol but the first begins, so that bisect_right(.., place) is the eojeol of a place, from 0.

    units: those of the text, if they are known; an empty list splits by white space alone, whatever it tears apart.
    """
    text = without_torn_spaces(text, list(units_of(text)) if units is None else units)
    return [word.start() for word in _WORD.finditer(text)][1:]
