"""Kiwi in a process of its own.

Kiwi holds Python's lock while it works, and the model needs that lock between its operations: in one process they would
take turns, however many cores there are. This process also loads Kiwi while the other one imports PyTorch.
"""

import multiprocessing
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from korbert.errors import ModelError
from korbert.processes import starting
from korbert.tokenization import Analysis, Analyzer, AnalyzerOptions, Tokenizer
from korbert.tokenization.analyzer import Analyses

__all__ = ["AnalysisProcess", "RemoteAnalyzer", "analysis_process"]


class AnalysisProcess:
    """The process. It ends with its parent; if it dies, the next request starts another.

    options: loaded at the start; others at their first request.
    """

    def __init__(self, options: Sequence[AnalyzerOptions]) -> None:
        self._options = options
        self._one_at_a_time = threading.Lock()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_answer, args=(theirs, self._options), daemon=True)
        with starting(signal.SIGINT, signal.SIGTERM):  # a terminal or systemd sends them to both processes
            self._process.start()
        theirs.close()

    def ask(self, options: AnalyzerOptions, texts: str | list[str]) -> Any:
        """The Analysis of a text, or a list of Analyses for many. RuntimeError if the process dies meanwhile."""
        with self._one_at_a_time:
            if not self._process.is_alive():
                self._start()
            try:
                self._connection.send((options, texts))
                found = self._connection.recv()
            except (EOFError, OSError):
                self._process.join()
                raise RuntimeError(f"the process of Kiwi ended with {self._process.exitcode}") from None
        if isinstance(found, Exception):
            raise found
        return found

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


class RemoteAnalyzer(Analyzer):
    """An Analyzer whose work is done in the process; those with equal options share one Kiwi there."""

    def __init__(self, options: AnalyzerOptions, process: AnalysisProcess) -> None:
        super().__init__(options)
        self._process = process

    def analyze(self, text: str) -> Analysis:
        found: Analysis = self._process.ask(self.options, text)
        return found

    def analyze_batches(self, texts: Iterable[str], *, workers: int = 0) -> Iterator[Analyses]:
        """As in Analyzer, but all texts at once; `workers` has no effect."""
        yield from self._process.ask(self.options, list(texts))


@contextmanager
def analysis_process(models: Iterable[Path]) -> Iterator[AnalysisProcess]:
    """The process, which begins to load Kiwi with the options of these models."""
    process = AnalysisProcess(_options_of(models))
    try:
        yield process
    finally:
        process.stop()


def _options_of(models: Iterable[Path]) -> list[AnalyzerOptions]:
    """The options of our tokenizers in these folders. Folders without a valid one are skipped."""
    found: list[AnalyzerOptions] = []
    for model in models:
        try:
            found.append(Tokenizer.load(model).analyzer_options)
        except ModelError:  # a tokenizer of transformers, or that of a base; broken ones are refused in loading
            continue
    return found


@cache
def _analyzer(options: AnalyzerOptions) -> Analyzer:
    """In the process."""
    return Analyzer(options)


def _answer(connection: Connection, options: Sequence[AnalyzerOptions]) -> None:
    """Runs in the process, until its parent ends."""
    for one in options:
        _analyzer(one).analyze("가")  # loads Kiwi
    while True:
        try:
            asked, texts = connection.recv()
        except EOFError:
            return
        try:
            analyzer = _analyzer(asked)
            found: Any = analyzer.analyze(texts) if isinstance(texts, str) else list(analyzer.analyze_batches(texts))
        except Exception as error:
            found = error
        connection.send(found)
