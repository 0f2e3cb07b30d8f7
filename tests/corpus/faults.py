"""Module-level functions for spawned workers: light stand-ins, and units that kill or hang the process they run in."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from korbert.corpus import analyze
from korbert.corpus.cleaning import clean
from korbert.errors import CorpusError
from korbert.tokenization import Analysis

CRASH = "죽어라"
HANG = "멈춰라"
_READ = clean._read
_ANALYZE = analyze._analyze  # before a test puts something else there


def double(unit: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(number * 2 for number in unit)


def halves(unit: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    middle = len(unit) // 2
    return (unit[:middle], unit[middle:]) if middle else None


def dies_on_seven(unit: tuple[int, ...]) -> tuple[int, ...]:
    time.sleep(0.2)
    if 7 in unit:
        os._exit(9)
    return unit


def hangs_on_seven(unit: tuple[int, ...]) -> tuple[int, ...]:
    if 7 in unit:
        time.sleep(600)
    return unit


def refuses(unit: tuple[int, ...]) -> None:
    raise CorpusError(f"unit {unit[0]}: 쓸 수 없다")


def loses_its_connection(unit: tuple[int, ...]) -> None:
    raise TimeoutError(110, "Connection timed out")


def dies_once(unit: tuple[str, int]) -> int:
    """Ends the process on the first call for a mark, which is a file."""
    mark, number = unit
    time.sleep(0.2)
    if number == 1 and not Path(mark).exists():
        Path(mark).touch()
        os._exit(9)
    return number


def tells_its_node(unit: tuple[str, int]) -> tuple[int, str]:
    """Writes which process of which node of a Ray cluster runs the unit, and takes a while."""
    import ray

    path, number = unit
    node = ray.get_runtime_context().get_node_id()
    Path(path).write_text(f"{os.getpid()} {node}")
    time.sleep(1.5)
    return number, node


def fails_to_start() -> None:
    raise RuntimeError("no Kiwi here")


def dies_at_start() -> None:
    os._exit(9)


def append_slowly(path: str) -> None:
    """Writes a line every 10 ms for a minute, which shows that the process is alive."""
    with Path(path).open("a", buffering=1) as file:
        for _ in range(6_000):
            file.write(f"{os.getpid()}\n")
            time.sleep(0.01)


def _crash_or_hang(text: str) -> None:
    """If the text says so."""
    if CRASH in text:
        time.sleep(0.2)
        os._exit(9)
    if HANG in text:
        time.sleep(600)


class Whitespace:
    """An analyzer for which every eojeol is a noun and every line a sentence."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def analyze_many(self, texts: Iterable[str]) -> Iterator[Analysis]:
        return map(self.analyze, texts)

    def analyze(self, text: str) -> Analysis:
        time.sleep(self._seconds)
        _crash_or_hang(text)
        rows: list[Any] = []
        offset = 0
        for sentence, line in enumerate(text.split("\n")):
            for word in line.split():
                start = text.index(word, offset)
                offset = start + len(word)
                rows.append((word, "NNG", start, offset, sentence, len(rows)))
        return Analysis(*map(list, zip(*rows, strict=True)))


def load_whitespace(options: object, seconds: float = 0.0) -> None:
    analyze._analyzer = Whitespace(seconds)  # type: ignore[assignment]


def _small_only(function: Callable[[Any], Any], unit: Any) -> Any:
    """As the function, but a unit of many records ends the process."""
    if unit.stop is None or unit.stop - unit.first > 12:
        time.sleep(0.2)
        os._exit(9)
    return function(unit)


def analyze_small_slices(unit: Any) -> Any:
    return _small_only(_ANALYZE, unit)


def read_small_pieces(unit: Any) -> Any:
    return _small_only(_READ, unit)


def read_or_fail(unit: Any) -> Any:
    """As `clean`, but some texts end the process or hang it."""
    for row in clean.rows(unit.chunk, unit.first, unit.stop):
        _crash_or_hang(row.text)
    return _READ(unit)
