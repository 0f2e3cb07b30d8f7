"""One text to morphemes: Kiwi with its options, the stretches of the text that it gets, and its tokens as an Analysis.

The text of this module is part of every exported folder, as are repair, vocabulary and pieces: they import
one another, the standard library, and kiwipiepy where they use it.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from korbert.tokenization.repair import (
    MAX_RUN,
    Repaired,
    has_torn_words,
    repair,
    split_line,
    split_torn,
    without_spaces,
)

if TYPE_CHECKING:
    from kiwipiepy import Kiwi, Token

KiwiOptions = Mapping[str, Any]  # AnalyzerOptions as a tokenizer's record has them, without some defaults

_LOADING = ("model_type", "load_default_dict", "load_multi_dict", "integrate_allomorph")
_CALLING = ("split_complex", "z_coda", "typos")
_FIT = re.compile(f"[ -~ㄱ-ㅣ가-힣]{{1,{MAX_RUN}}}")  # a line that neither `split_line` nor `repair` would change
_WORD = re.compile(r"\S+")
_SPACE = re.compile(r"\s")


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


class Stretch(NamedTuple):
    """A stretch of a line that Kiwi gets in one call; nearly always it is the line."""

    text: str
    offset: int  # of the stretch in the text
    repaired: Repaired | None  # None: `text` is a slice of the text
    continues: bool  # the same line as the stretch before: its sentence goes on
    torn: bool  # its spaces are left out, as they tear words apart


def load_kiwi(options: KiwiOptions, threads: int) -> "Kiwi":
    """Kiwi with these options. Takes 4 s and 0.5 GB."""
    from kiwipiepy import Kiwi

    loading = {name: options[name] for name in _LOADING}
    if dialects := options.get("dialects"):
        loading["enabled_dialects"] = ",".join(dialects).upper()
    kiwi = Kiwi(num_workers=threads, **loading)
    kiwi.global_config.space_tolerance = options.get("space_tolerance", 0)
    for word in options.get("user_words", ()):
        kiwi.add_user_word(word["form"], word["tag"], word["score"])
    return kiwi


def call_options(options: KiwiOptions) -> KiwiOptions:
    """Keyword arguments of each Kiwi.tokenize."""
    calling = {name: options[name] for name in _CALLING if name in options}
    if dialects := options.get("dialects"):
        calling["allowed_dialects"] = ",".join(dialects).upper()
    return calling


def stretches_of(text: str) -> Iterator[Stretch]:
    """What Kiwi gets of a text: its lines, without blank ones, cut where they are too long for it."""
    if _FIT.fullmatch(text) and not has_torn_words(text):
        yield Stretch(text, 0, None, False, False)
        return
    offset = 0
    for line in text.split("\n"):
        continues = False
        torn = has_torn_words(line)
        for begin, part in split_torn(line) if torn else split_line(line):
            if part and not part.isspace():
                repaired = without_spaces(part) if torn else repair(part)
                fit = part if repaired is None else repaired.text
                yield Stretch(fit, offset + begin, repaired, continues, torn)
                continues = True
        offset += len(line) + 1


def analyze(text: str, kiwi: "Kiwi", calling: KiwiOptions) -> Analysis:
    """The morphemes of a text, on the caller's thread. kiwi, calling: from load_kiwi and call_options."""
    stretches = list(stretches_of(text))
    tokens: dict[str, list[Token]] = {}
    for stretch in stretches:
        if stretch.text not in tokens:  # equal ones are analyzed once: a run of 가 costs 20 s a megabyte
            tokens[stretch.text] = kiwi.tokenize(stretch.text, **calling)
    return analysis_of(text, stretches, [tokens[stretch.text] for stretch in stretches])


def analysis_of(text: str, stretches: list[Stretch], tokens: Iterable[list["Token"]]) -> Analysis:
    """The morphemes of a text. tokens: Kiwi's, of each of its stretches.

    The columns are lists: arrays would cost a short text more than half of Kiwi's own time.
    """
    analysis = Analysis()
    for (_, offset, repaired, continues, _), own in zip(stretches, tokens, strict=True):
        first = analysis.sentences[-1] + (not continues) if analysis.sentences else 0
        for token in own:
            start: int = token.start
            end: int = token.end
            if repaired is not None:
                start, end = repaired.span(start, end)
            analysis.forms.append(token.form)
            analysis.tags.append(sys.intern(token.tag))  # Kiwi makes a new string for each token
            analysis.starts.append(offset + start)
            analysis.ends.append(offset + end)
            analysis.sentences.append(first + token.sent_position)
    later = eojeols_after(text, stretches)
    analysis.eojeols += [bisect_right(later, start) for start in analysis.starts]
    return analysis


def eojeols_after(text: str, stretches: list[Stretch] | None = None) -> list[int]:
    """Where each eojeol but the first begins, so that bisect_right(.., place) is the eojeol of a place, from 0.

    stretches: those of the text, if they are known; an empty list splits by white space alone, whatever it tears apart.
    """
    if stretches is None:
        stretches = list(stretches_of(text))
    # Spaces that tear words apart separate no eojeols: another character takes their place.
    parts: list[str] = []
    end = 0
    for number, stretch in enumerate(stretches, 1):
        if stretch.torn and stretch.repaired is not None and stretch.repaired.ends:
            begin = stretch.offset
            stop = begin + stretch.repaired.ends[-1]
            if number < len(stretches) and stretches[number].continues:
                stop = stretches[number].offset
            parts += [text[end:begin], _SPACE.sub("_", text[begin:stop])]
            end = stop
    parts.append(text[end:])
    return [word.start() for word in _WORD.finditer("".join(parts))][1:]
