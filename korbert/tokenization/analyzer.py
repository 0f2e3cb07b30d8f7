"""Korean text to morphemes by Kiwi, line by line, with spans in the text as given."""

import os
import re
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice, pairwise, starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.tokenization.repair import MAX_RUN, Repaired, cut, repair
from korbert.tokenization.settings import AnalyzerOptions
from korbert.versions import installed_version

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

__all__ = ["Analyses", "Analysis", "Analyzer", "changes"]

_OF_THE_MODEL = {"model_type", "load_default_dict", "load_multi_dict", "integrate_allomorph"}
_PACKAGES = ("kiwipiepy", "kiwipiepy_model")  # what decides the morphemes, beside the options
_BATCH_CHARS, _BATCH_TEXTS = 20_000, 400  # of a batch, at least one text
_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])  # the last stands for all above: none is
_FIT = re.compile(f"[ -~ㄱ-ㅣ가-힣]{{1,{MAX_RUN}}}")  # a line that neither `cut` nor `repair` would change
_WORD = re.compile(r"\S+")
_FORM, _TAG = attrgetter("form"), attrgetter("tag")
_NUMBERS = [attrgetter(name) for name in ("start", "end", "sent_position")]

Ints = NDArray[Any]
Bools = NDArray[np.bool_]


@dataclass(slots=True)
class Analysis:
    """A text as morphemes: parallel lists, one entry a morpheme.

    forms, tags: 하/VV as Kiwi gives them. starts, ends: half-open spans in code points of the text as given; those of
    fused morphemes overlap (했: 하 [0, 1), 었 [0, 1)) or are empty. sentences: by Kiwi, a new one at every line.
    eojeols: by white space of the text. Both are counted from 0 through the text.
    """

    forms: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    sentences: list[int] = field(default_factory=list)
    eojeols: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.forms)

    def __getitem__(self, part: slice) -> "Analysis":
        return Analysis(
            self.forms[part],
            self.tags[part],
            self.starts[part],
            self.ends[part],
            self.sentences[part],
            self.eojeols[part],
        )


@dataclass(slots=True)
class Analyses:
    """N texts in a row, M morphemes in all, in one column each: work on them takes no loop over texts.

    bounds: (N + 1,), where the morphemes of each text begin and end. starts, ends, sentences, eojeols: (M,) int32;
    these and spans are those of the text they are of, as Analysis has them.
    """

    texts: Sequence[str]
    bounds: Ints
    forms: list[str]
    tags: list[str]
    starts: Ints
    ends: Ints
    sentences: Ints
    eojeols: Ints

    def __iter__(self) -> Iterator[Analysis]:
        columns = self.starts, self.ends, self.sentences, self.eojeols
        lists = self.forms, self.tags, *(column.tolist() for column in columns)
        return (Analysis(*(column[begin:end] for column in lists)) for begin, end in pairwise(self.bounds.tolist()))


class _Unit(NamedTuple):
    """What Kiwi gets in one call, and where it stands."""

    text: str
    offset: int  # of the unit in the text
    repaired: Repaired | None  # None: `text` is a slice of the text
    continues: bool  # the same line as the unit before: its sentence goes on


class _Text(NamedTuple):
    """A text on its way: what Kiwi gets of it, and its tokens, one list a unit."""

    text: str
    units: list[_Unit]
    tokens: list[Any]


class _Loaded(NamedTuple):
    kiwi: "Kiwi"
    threads: int
    process: int  # that the threads are of


class Analyzer:
    """Kiwi with fixed options. It loads at first use (4 s, 0.5 GB), anew in each process that it is pickled to."""

    def __init__(self, options: AnalyzerOptions | None = None) -> None:
        self.options = options or AnalyzerOptions()
        self._call = _of_a_call(self.options)
        self._loaded: _Loaded | None = None

    def __reduce__(self) -> tuple[type["Analyzer"], tuple[AnalyzerOptions]]:
        return type(self), (self.options,)

    @property
    def versions(self) -> dict[str, str]:
        """Installed versions of what decides the morphemes, without loading it."""
        return {package: installed_version(package) for package in _PACKAGES}

    def analyze(self, text: str) -> Analysis:
        """The morphemes of a text. '학교에 간다' -> 학교/NNG [0, 2) 에/JKB [2, 3) 가/VV [4, 5) ᆫ다/EF [4, 6)"""
        units = list(_units(text))
        return _alone(_Text(text, units, self._tokens(units)))

    def analyze_many(self, texts: Iterable[str], *, workers: int = 0) -> Iterator[Analysis]:
        """One analysis a text, in order, reading some hundred texts ahead; the same as analyze() of each.

        workers: threads of Kiwi's, which work while the caller does; loaded anew for another number. 0: none, the
        caller's thread works, as is best where each core has a process, and as a process does that was forked off one
        with Kiwi loaded.
        """
        return chain.from_iterable(self.analyze_batches(texts, workers=workers))

    def analyze_batches(self, texts: Iterable[str], *, workers: int = 0) -> Iterator[Analyses]:
        """What analyze_many gives, some texts at a time: four times as fast, Kiwi itself not counted."""
        if workers < 0:
            raise SettingsError(f"workers {workers}: say how many threads Kiwi gets, or 0 to work on the caller's")
        batches = _batched(_Text(text, list(_units(text)), []) for text in texts)
        # A forked process has what its parent loaded, but not the threads.
        forked = self._loaded is not None and self._loaded.process != os.getpid()
        for batch in self._in_turn(batches) if forked or not workers else self._in_threads(batches, workers):
            yield _joined(batch)

    def _in_turn(self, batches: Iterator[list[_Text]]) -> Iterator[list[_Text]]:
        """The batches with their tokens, on the caller's thread."""
        for batch in batches:
            for one in batch:
                one.tokens.extend(self._tokens(one.units))
            yield batch

    def _in_threads(self, batches: Iterator[list[_Text]], workers: int) -> Iterator[list[_Text]]:
        """The batches with their tokens, from Kiwi's threads. They have the next batch before one is given out: else
        they would wait while the caller is busy with it."""
        tokenize, at_once = self._kiwi(workers).tokenize, 16 * workers  # of an iterator Kiwi reads so many ahead
        ahead: deque[tuple[list[_Text], Iterator[Any]]] = deque()
        for batch in batches:
            units = [unit.text for one in batch for unit in one.units]
            begun = [tokenize(units[i : i + at_once], **self._call) for i in range(0, len(units), at_once)]
            ahead.append((batch, chain.from_iterable(begun)))
            if len(ahead) > 1:
                yield _with_tokens(*ahead.popleft())
        yield from starmap(_with_tokens, ahead)

    def _tokens(self, units: list[_Unit]) -> list[Any]:
        """Kiwi's tokens of the units of a text. Those alike are analysed once: a run of 가 costs 20 s a megabyte."""
        tokenize = self._kiwi().tokenize
        if len(units) == 1:
            return [tokenize(units[0].text, **self._call)]
        found = {text: tokenize(text, **self._call) for text in dict.fromkeys(unit.text for unit in units)}
        return [found[unit.text] for unit in units]

    def _kiwi(self, threads: int = 0) -> "Kiwi":
        """With as many threads; 0: with any, for single texts, which run on the caller's thread."""
        if self._loaded is None or threads not in (0, self._loaded.threads):
            self._loaded = None  # two would take twice the memory
            self._loaded = _Loaded(self._load(max(threads, 1)), max(threads, 1), os.getpid())
        return self._loaded.kiwi

    def _load(self, threads: int) -> "Kiwi":
        from kiwipiepy import Kiwi

        options = self.options.model_dump(include=_OF_THE_MODEL)
        if self.options.dialects:
            options["enabled_dialects"] = _names(self.options.dialects)
        kiwi = Kiwi(num_workers=threads, **options)
        kiwi.global_config.space_tolerance = self.options.space_tolerance
        for word in self.options.user_words:
            kiwi.add_user_word(word.form, word.tag, word.score)
        return kiwi


def _of_a_call(options: AnalyzerOptions) -> dict[str, Any]:
    """What Kiwi is told with each text; the rest it is told once."""
    call: dict[str, Any] = {"split_complex": options.split_complex, "z_coda": options.z_coda}
    if options.typos != "none":
        call["typos"] = options.typos
    if options.dialects:
        call["allowed_dialects"] = _names(options.dialects)
    return call


def _names(dialects: tuple[str, ...]) -> str:
    return ",".join(dialects).upper()


def _batched(texts: Iterator[_Text]) -> Iterator[list[_Text]]:
    """Some at a time: one by one, Kiwi would push our code and data out of the processor's caches each time."""
    batch: list[_Text] = []
    chars = 0
    for one in texts:
        batch.append(one)
        chars += len(one.text)
        if chars >= _BATCH_CHARS or len(batch) >= _BATCH_TEXTS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _with_tokens(batch: list[_Text], tokens: Iterator[Any]) -> list[_Text]:
    for one in batch:
        one.tokens.extend(islice(tokens, len(one.units)))
    return batch


def _units(text: str) -> Iterator[_Unit]:
    if _FIT.fullmatch(text):
        yield _Unit(text, 0, None, False)
        return
    offset = 0
    for line in text.split("\n"):
        continues = False
        for begin, part in cut(line):
            if part and not part.isspace():
                repaired = repair(part)
                yield _Unit(part if repaired is None else repaired.text, offset + begin, repaired, continues)
                continues = True
        offset += len(line) + 1


def _alone(one: _Text) -> Analysis:
    """What _joined gives, of one text: arrays would cost a short one more than half of Kiwi's own time."""
    forms: list[str] = []
    tags: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    sentences: list[int] = []
    for (_, offset, repaired, continues), tokens in zip(one.units, one.tokens, strict=True):
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
    later = [word.start() for word in _WORD.finditer(one.text)][1:]  # where each eojeol but the first begins
    return Analysis(forms, tags, starts, ends, sentences, [bisect_right(later, start) for start in starts])


def _joined(batch: list[_Text]) -> Analyses:
    """The tokens of all units of some texts as one analysis."""
    units = [unit for one in batch for unit in one.units]
    each = [tokens for one in batch for tokens in one.tokens]
    counts = list(map(len, each))
    tokens = list(chain.from_iterable(each))
    starts, ends, sentences = (np.fromiter(map(column, tokens), np.int32, len(tokens)) for column in _NUMBERS)
    for unit, count, end in zip(units, counts, accumulate(counts), strict=True):
        if unit.repaired is not None:
            here = slice(end - count, end)
            starts[here], ends[here] = _mapped(unit.repaired, starts[here].tolist(), ends[here].tolist())
    offsets = np.repeat(np.array([unit.offset for unit in units], np.int32), counts)
    starts += offsets
    ends += offsets
    sentences += np.repeat(np.array(_first_sentences(batch), np.int32), counts)
    texts = [one.text for one in batch]
    bounds = np.array([0, *accumulate(sum(map(len, one.tokens)) for one in batch)], np.int64)
    return Analyses(
        texts,
        bounds,
        list(map(_FORM, tokens)),
        list(map(sys.intern, map(_TAG, tokens))),  # Kiwi makes a new one for each token
        starts,
        ends,
        sentences,
        _eojeols(texts, bounds, starts),
    )


def _first_sentences(batch: list[_Text]) -> list[int]:
    """The number of the first sentence of each unit in its text: a new one at every line."""
    found: list[int] = []
    for one in batch:
        last: int | None = None
        for unit, tokens in zip(one.units, one.tokens, strict=True):
            found.append(0 if last is None else last + (not unit.continues))
            if tokens:
                last = found[-1] + tokens[-1].sent_position
    return found


def _eojeols(texts: Sequence[str], bounds: Ints, starts: Ints) -> Ints:
    """Which word of its text each morpheme starts in, or after; words are what white space parts."""
    joined = "\n".join(("", *texts, ""))
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")
    spaces = _IS_SPACE[np.minimum(codes, len(_IS_SPACE) - 1)]
    words = np.cumsum(np.append(False, spaces[:-1] & ~spaces[1:]), dtype=np.int32)  # begun so far, at each character
    feeds = np.cumsum([0, *(len(text) + 1 for text in texts)])[:-1]  # the "\n" before each text
    counts = np.diff(bounds)
    begun = words[starts + np.repeat(feeds + 1, counts)] - np.repeat(words[feeds], counts)
    found: Ints = np.maximum(begun - 1, 0)
    return found


def changes(numbers: Ints, bounds: Ints) -> Bools:
    """(M,) bool: where a number differs from the one before, or is the first of its text. bounds: (N + 1,)."""
    begins = np.ones(len(numbers), bool)
    begins[1:] = numbers[1:] != numbers[:-1]
    firsts = bounds[:-1]
    begins[firsts[firsts < bounds[1:]]] = True
    return begins


def _mapped(repaired: Repaired, starts: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
    spans = [repaired.span(start, end) for start, end in zip(starts, ends, strict=True)]
    return [start for start, _ in spans], [end for _, end in spans]
