"""Korean text to morphemes by Kiwi, line by line, with spans in the text as given."""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from korbert.tokenization.repair import Repaired, cut, repair
from korbert.tokenization.settings import AnalyzerOptions

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

__all__ = ["Analysis", "Analyzer"]

_PACKAGES = ("kiwipiepy", "kiwipiepy_model")  # what decides the morphemes, beside the options
_BATCH_CHARS, _BATCH_TEXTS = 10_000, 200  # how far analyze_many reads ahead
_WORD = re.compile(r"\S+")
_COLUMNS = [attrgetter(name) for name in ("form", "tag", "start", "end", "sent_position")]


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


class _Unit(NamedTuple):
    """What Kiwi gets in one call, and where it stands."""

    text: str
    offset: int  # of the unit in the text
    repaired: Repaired | None  # None: `text` is a slice of the text
    continues: bool  # the same line as the unit before: its sentence goes on


class Analyzer:
    """Kiwi with fixed options. It loads at first use (4 s, 0.5 GB), anew in each process that it is pickled to."""

    def __init__(self, options: AnalyzerOptions | None = None) -> None:
        self.options = options or AnalyzerOptions()
        self._call = {"split_complex": self.options.split_complex, "z_coda": self.options.z_coda}
        self._loaded: Kiwi | None = None
        self._threads = 0  # of what is loaded

    def __reduce__(self) -> tuple[type["Analyzer"], tuple[AnalyzerOptions]]:
        return type(self), (self.options,)

    @property
    def versions(self) -> dict[str, str]:
        """Installed versions of what decides the morphemes, without loading it."""
        return {package: version(package) for package in _PACKAGES}

    def analyze(self, text: str) -> Analysis:
        """The morphemes of a text. '학교에 간다' -> 학교/NNG [0, 2) 에/JKB [2, 3) 가/VV [4, 5) ᆫ다/EF [4, 6)"""
        units = list(_units(text))
        return _analysis(text, units, self._tokens(units))

    def analyze_many(self, texts: Iterable[str], *, workers: int = 1) -> Iterator[Analysis]:
        """One analysis a text, in order, reading a few texts ahead; the same as analyze() of each.

        workers: Kiwi's threads, which are loaded anew for another number; with 1 the caller's thread works.
        """
        if workers == 1:
            for batch in _batches(texts):
                results = [self._tokens(units) for _, units in batch]
                for (text, units), tokens in zip(batch, results, strict=True):
                    yield _analysis(text, units, tokens)
            return
        waiting: deque[tuple[str, list[_Unit], list[Any]]] = deque()
        for tokens in self._kiwi(workers).tokenize(_feed(texts, waiting), **self._call):
            yield from _finished(waiting)
            waiting[0][2].append(tokens)
        yield from _finished(waiting)

    def _tokens(self, units: list[_Unit]) -> list[Any]:
        """Kiwi's tokens of the units of a text. Those alike are analysed once: a run of 가 costs 20 s a megabyte."""
        tokenize = self._kiwi().tokenize
        found = {text: tokenize(text, **self._call) for text in dict.fromkeys(unit.text for unit in units)}
        return [found[unit.text] for unit in units]

    def _kiwi(self, threads: int = 1) -> "Kiwi":
        """A single text runs on the caller's thread, however many the loaded one has."""
        if self._loaded is None or threads not in (1, self._threads):
            from kiwipiepy import Kiwi

            options = self.options.model_dump(exclude={*self._call, "user_words"})
            self._loaded = None  # two would take twice the memory
            self._loaded, self._threads = Kiwi(num_workers=threads, **options), threads
            for word in self.options.user_words:
                self._loaded.add_user_word(word.form, word.tag, word.score)
        return self._loaded


def _batches(texts: Iterable[str]) -> Iterator[list[tuple[str, list[_Unit]]]]:
    """Texts with their units. One by one, Kiwi would push our code and data out of the processor's caches each time."""
    batch: list[tuple[str, list[_Unit]]] = []
    chars = 0
    for text in texts:
        batch.append((text, list(_units(text))))
        chars += len(text)
        if chars >= _BATCH_CHARS or len(batch) >= _BATCH_TEXTS:
            yield batch
            batch, chars = [], 0
    yield batch


def _feed(texts: Iterable[str], waiting: deque[tuple[str, list[_Unit], list[Any]]]) -> Iterator[str]:
    for text in texts:
        units = list(_units(text))
        waiting.append((text, units, []))
        for unit in units:
            yield unit.text


def _finished(waiting: deque[tuple[str, list[_Unit], list[Any]]]) -> Iterator[Analysis]:
    while waiting and len(waiting[0][1]) == len(waiting[0][2]):
        yield _analysis(*waiting.popleft())


def _units(text: str) -> Iterator[_Unit]:
    offset = 0
    for line in text.split("\n"):
        continues = False
        for begin, part in cut(line):
            if part and not part.isspace():
                repaired = repair(part)
                yield _Unit(part if repaired is None else repaired.text, offset + begin, repaired, continues)
                continues = True
        offset += len(line) + 1


def _analysis(text: str, units: list[_Unit], results: list[Any]) -> Analysis:
    """The tokens of all units of a text as one analysis."""
    found = Analysis()
    for unit, tokens in zip(units, results, strict=True):
        if not tokens:
            continue
        forms, tags, starts, ends, sentences = (list(map(column, tokens)) for column in _COLUMNS)
        if unit.repaired is not None:
            starts, ends = _mapped(unit.repaired, starts, ends)
        first = found.sentences[-1] + (not unit.continues) if found.sentences else 0
        offset = unit.offset
        found.forms += forms
        found.tags += tags
        found.starts += [offset + start for start in starts] if offset else starts
        found.ends += [offset + end for end in ends] if offset else ends
        found.sentences += [first + sentence for sentence in sentences] if first else sentences
    later = [match.start() for match in _WORD.finditer(text)][1:]  # where each eojeol but the first begins
    found.eojeols = [bisect_right(later, start) for start in found.starts]
    return found


def _mapped(repaired: Repaired, starts: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
    spans = [repaired.span(start, end) for start, end in zip(starts, ends, strict=True)]
    return [start for start, _ in spans], [end for _, end in spans]
