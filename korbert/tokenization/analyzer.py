"""Analyzes texts with Kiwi, one or many; morphemes.py does the work on a text."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, tee
from typing import TYPE_CHECKING

from korbert.errors import SettingsError
from korbert.system import installed_version
from korbert.tokenization.morphemes import Analysis, analysis_of, analyze, call_options, load_kiwi, stretches_of
from korbert.tokenization.tokenizer_settings import AnalyzerOptions

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

_PACKAGES = ("kiwipiepy", "kiwipiepy_model")  # versions that determine the morphemes, besides the options


class Analyzer:
    """Kiwi with fixed options. It loads at first use (4 s, 0.5 GB), and again in each process that it is pickled to."""

    def __init__(self, options: AnalyzerOptions | None = None) -> None:
        self.options = options or AnalyzerOptions()
        self._record = self.options.model_dump()
        self._calling = call_options(self._record)
        self._loaded: Kiwi | None = None
        self._threads = 0
        self._started_in = 0  # the process that started the threads

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
        """analyze() of each text, in order.

        workers: threads of Kiwi, in addition to the caller's; they read some texts ahead. A number that differs from
        the last one loads Kiwi again. 0: the caller's thread does the work, which is best where each core has a
        process; so it does in a process that was forked after Kiwi was loaded, whatever `workers` is.
        """
        if workers < 0:
            raise SettingsError(
                "workers {workers}: say how many threads Kiwi gets, or 0 to work on the caller's", workers=workers
            )
        # A forked process has what its parent loaded, but not the threads.
        forked = self._loaded is not None and self._started_in != os.getpid()
        if not workers or forked:
            yield from map(self.analyze, texts)
            return
        # Kiwi reads the stretches of the texts ahead, so that its threads need not wait for the caller.
        ahead, cut = tee((text, list(stretches_of(text))) for text in texts)
        stretches = (stretch.text for _, text_stretches in ahead for stretch in text_stretches)
        tokens = self._kiwi(workers).tokenize(stretches, **self._calling)
        for text, text_stretches in cut:
            yield analysis_of(text, text_stretches, list(islice(tokens, len(text_stretches))))

    def _kiwi(self, threads: int = 0) -> "Kiwi":
        """Kiwi, loaded if need be. threads: how many it must have; 0: any number, as single texts need none."""
        if self._loaded is None or threads not in (0, self._threads):
            self._loaded = None  # two would take twice the memory
            self._threads = max(threads, 1)
            self._loaded = load_kiwi(self._record, self._threads)
            self._started_in = os.getpid()
        return self._loaded
