"""Kiwi in a process of its own.

Kiwi holds Python's lock while it works, and the model needs that lock between its operations: in one process they would
take turns, however many cores there are. This process also loads Kiwi while the other one imports PyTorch.
"""

import multiprocessing
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from korbert.errors import ModelError
from korbert.system import starting_processes
from korbert.tokenization import Analysis, Analyzer, AnalyzerOptions, Tokenizer


class AnalysisProcess:
    """The process. It ends with its parent; if it dies, the next request starts another.

    models: folders of models whose Kiwi is loaded at the start; that of any other model is loaded at its first request.
    """

    def __init__(self, models: Iterable[Path]) -> None:
        self._options: list[AnalyzerOptions] = []
        for model in models:
            with suppress(ModelError):  # a tokenizer without Kiwi, or a broken model, which korbert.load refuses
                self._options.append(Tokenizer.load(model).analyzer_options)
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        self._process = context.Process(target=_answer, args=(child, self._options), daemon=True)
        with starting_processes(signal.SIGINT, signal.SIGTERM):  # a terminal or systemd sends them to both processes
            self._process.start()
        child.close()

    def ask(self, options: AnalyzerOptions, texts: str | list[str]) -> Any:
        """Returns the Analysis of a text, or a list of them for a list. RuntimeError if the process dies meanwhile.

        An error of Kiwi is raised here.
        """
        with self._lock:
            if not self._process.is_alive():
                self._start()
            try:
                self._connection.send((options, texts))
                result = self._connection.recv()
            except (EOFError, OSError):
                self._process.join()
                raise RuntimeError(f"the process of Kiwi ended with {self._process.exitcode}") from None
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None:
        self._process.kill()
        self._process.join()


class RemoteAnalyzer(Analyzer):
    """An Analyzer whose work an AnalysisProcess does; there, analyzers with equal options share one Kiwi."""

    def __init__(self, options: AnalyzerOptions, process: AnalysisProcess) -> None:
        super().__init__(options)
        self._process = process

    def analyze(self, text: str) -> Analysis:
        analysis: Analysis = self._process.ask(self.options, text)
        return analysis

    def analyze_many(self, texts: Iterable[str], *, workers: int = 0) -> Iterator[Analysis]:
        """As in Analyzer, but all texts at once; `workers` has no effect."""
        yield from self._process.ask(self.options, list(texts))


def _answer(connection: Connection, preloaded: Sequence[AnalyzerOptions]) -> None:
    """Analyses the texts that arrive; runs in the process of Kiwi until its parent ends."""
    analyzer_of = cache(Analyzer)
    for options in preloaded:
        analyzer_of(options).analyze("가")  # loads Kiwi
    with suppress(EOFError):
        while True:
            options, texts = connection.recv()
            try:
                analyzer = analyzer_of(options)
                single = isinstance(texts, str)
                result: Any = analyzer.analyze(texts) if single else list(analyzer.analyze_many(texts))
            except Exception as error:
                result = error
            connection.send(result)
