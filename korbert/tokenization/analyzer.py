"""Analyzes many texts with Kiwi, in columns; for a single text see morphemes.analyze."""

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.system import installed_version
from korbert.tokenization.morphemes import (
    Analysis,
    Unit,
    analyze,
    call_options,
    eojeols_after,
    load_kiwi,
    tokens_of,
    units_of,
)
from korbert.tokenization.settings import AnalyzerOptions

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

_PACKAGES = ("kiwipiepy", "kiwipiepy_model")  # versions that determine the morphemes, besides the options
_BATCH_CHARS, _BATCH_TEXTS = 20_000, 400  # a batch is complete at either; it has at least one text
_FORM, _TAG = attrgetter("form"), attrgetter("tag")
_NUMBERS = [attrgetter(name) for name in ("start", "end", "sent_position")]

Ints = NDArray[Any]
Bools = NDArray[np.bool_]


@dataclass(slots=True)
class Analyses:
    """The M morphemes of N texts, concatenated in columns, so that no loop over texts is needed.

    bounds: (N + 1,), where the morphemes of each text begin and end. starts, ends, sentences, eojeols: (M,) int32,
    counted from 0 in each text, as in Analysis.
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


class _Text(NamedTuple):
    """A text being analyzed: its units, and Kiwi's tokens, one list per unit."""

    text: str
    units: list[Unit]
    tokens: list[Any]


class _Loaded(NamedTuple):
    kiwi: "Kiwi"
    threads: int
    process: int  # that started the threads


class Analyzer:
    """Kiwi with fixed options. It loads at first use (4 s, 0.5 GB), and again in each process that it is pickled to."""

    def __init__(self, options: AnalyzerOptions | None = None) -> None:
        self.options = options or AnalyzerOptions()
        self._record = self.options.model_dump()
        self._calling = call_options(self._record)
        self._loaded: _Loaded | None = None

    def __reduce__(self) -> tuple[type["Analyzer"], tuple[AnalyzerOptions]]:
        return type(self), (self.options,)

    @property
    def versions(self) -> dict[str, str]:
        """Installed versions of the packages that determine the morphemes; nothing is loaded."""
        return {package: installed_version(package) for package in _PACKAGES}

    def analyze(self, text: str) -> Analysis:
        """The morphemes of a text. '학교에 간다' -> 학교/NNG [0, 2) 에/JKB [2, 3) 가/VV [4, 5) ᆫ다/EF [4, 6)"""
        return analyze(text, self._kiwi(), self._calling)

    def join(self, morphs: Sequence[tuple[str, str] | tuple[str, str, bool]]) -> str:
        """The text of (form, tag) pairs: 만들/VV 었/EP 다/EF -> 만들었다. A third item, True: a space before it."""
        return str(self._kiwi().join(morphs))

    def analyze_many(self, texts: Iterable[str], *, workers: int = 0) -> Iterator[Analysis]:
        """analyze() of each text, in order; some hundred texts are read ahead.

        workers: threads of Kiwi, which work beside the caller's; another number than before loads Kiwi again. 0: the
        caller's thread works, which is best where each core has a process. A process forked off one with Kiwi loaded
        always works like this.
        """
        return chain.from_iterable(self.analyze_batches(texts, workers=workers))

    def analyze_batches(self, texts: Iterable[str], *, workers: int = 0) -> Iterator[Analyses]:
        """As analyze_many, but in batches of texts: four times as fast, Kiwi itself not counted."""
        if workers < 0:
            raise SettingsError(
                "workers {workers}: say how many threads Kiwi gets, or 0 to work on the caller's", workers=workers
            )
        # A forked process has what its parent loaded, but not the threads.
        forked = self._loaded is not None and self._loaded.process != os.getpid()
        if workers and not forked:
            yield from map(_joined, self._in_threads(_batched(texts), workers))
            return
        for batch in _batched(texts):
            for item in batch:
                item.tokens.extend(tokens_of(item.units, self._kiwi(), self._calling))
            yield _joined(batch)

    def _in_threads(self, batches: Iterator[list[_Text]], workers: int) -> Iterator[list[_Text]]:
        """The batches with their tokens, from Kiwi's threads, which get the next batch before one is given out: they
        would otherwise wait while the caller works on it."""
        tokenize, at_once = self._kiwi(workers).tokenize, 16 * workers  # so many texts of an iterator Kiwi reads ahead
        waiting: deque[tuple[list[_Text], Iterator[Any]]] = deque()
        for batch in chain(batches, [[]]):  # the empty batch brings out the last one
            units = [unit.text for item in batch for unit in item.units]
            begun = [tokenize(units[i : i + at_once], **self._calling) for i in range(0, len(units), at_once)]
            waiting.append((batch, chain.from_iterable(begun)))
            if len(waiting) > 1:
                complete, tokens = waiting.popleft()
                for item in complete:
                    item.tokens.extend(islice(tokens, len(item.units)))
                yield complete

    def _kiwi(self, threads: int = 0) -> "Kiwi":
        """Kiwi, loaded if need be. threads: as many; 0: any number, as single texts need none."""
        if self._loaded is None or threads not in (0, self._loaded.threads):
            self._loaded = None  # two would take twice the memory
            self._loaded = _Loaded(load_kiwi(self._record, max(threads, 1)), max(threads, 1), os.getpid())
        return self._loaded.kiwi


def _batched(texts: Iterable[str]) -> Iterator[list[_Text]]:
    """Batches of texts: between single ones, Kiwi would push our code and data out of the processor's caches."""
    batch: list[_Text] = []
    chars = 0
    for text in texts:
        batch.append(_Text(text, list(units_of(text)), []))
        chars += len(text)
        if chars >= _BATCH_CHARS or len(batch) >= _BATCH_TEXTS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _joined(batch: list[_Text]) -> Analyses:
    """The result of morphemes.analyze for each text, in columns."""
    units = [unit for item in batch for unit in item.units]
    by_unit = [tokens for item in batch for tokens in item.tokens]
    counts = list(map(len, by_unit))
    tokens = list(chain.from_iterable(by_unit))
    starts, ends, sentences = (np.fromiter(map(column, tokens), np.int32, len(tokens)) for column in _NUMBERS)
    # Spans of repaired units lead back to the text as given.
    for unit, count, end in zip(units, counts, accumulate(counts), strict=True):
        if unit.repaired is not None and count:
            here = slice(end - count, end)
            spans = map(unit.repaired.span, starts[here].tolist(), ends[here].tolist())
            starts[here], ends[here] = zip(*spans, strict=True)
    offsets = np.repeat(np.array([unit.offset for unit in units], np.int32), counts)
    starts += offsets
    ends += offsets
    # Kiwi counts sentences in each unit; they go on where a unit continues a line, and a new line begins one.
    firsts: list[int] = []
    for item in batch:
        last: int | None = None
        for unit, own in zip(item.units, item.tokens, strict=True):
            firsts.append(0 if last is None else last + (not unit.continues))
            if own:
                last = firsts[-1] + own[-1].sent_position
    sentences += np.repeat(np.array(firsts, np.int32), counts)
    bounds = np.array([0, *accumulate(sum(map(len, item.tokens)) for item in batch)], np.int64)
    eojeols = np.empty(len(tokens), np.int32)
    for item, (begin, end) in zip(batch, pairwise(bounds.tolist()), strict=True):
        later = eojeols_after(item.text, item.units)
        eojeols[begin:end] = np.searchsorted(later, starts[begin:end], "right")
    return Analyses(
        [item.text for item in batch],
        bounds,
        list(map(_FORM, tokens)),
        list(map(sys.intern, map(_TAG, tokens))),  # Kiwi makes a new string for each token
        starts,
        ends,
        sentences,
        eojeols,
    )


def changes(numbers: Ints, bounds: Ints) -> Bools:
    """(M,) bool: where a number differs from the one before, or is the first of its text. bounds: (N + 1,)."""
    begins = np.ones(len(numbers), bool)
    begins[1:] = numbers[1:] != numbers[:-1]
    firsts = bounds[:-1]
    begins[firsts[firsts < bounds[1:]]] = True
    return begins
