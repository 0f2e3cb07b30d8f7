"""Files of text -> questions, paragraph by paragraph, in the order of the files whatever the workers."""

import json
import re
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, Field

from corpus.execution.parts import key_of
from corpus.execution.workers import Outcome, Workers, run_units
from corpus.questions.making import Made, Maker, paragraphs
from corpus.readers import Chunk, chunks, count_records, rows
from corpus.readers.records import File
from corpus.settings import MIB, SourceSettings
from korbert.durable import read_object, write_whole
from korbert.progress import track
from korbert.tokenization.morphemes import call_options, load_kiwi
from korbert.tokenization.settings import AnalyzerOptions

__all__ = ["Asked", "QuestionSettings", "generate", "is_part"]

_PART_BYTES = MIB // 4
# About ten times what Kiwi takes on a busy machine; a part that takes longer is halved, down to the document at fault.
_SECONDS_PER_MIB, _MIN_SECONDS = 1_000.0, 120.0
_VERSION = 1  # raise it when the same text gives different questions
_LIBRARIES = ("kiwipiepy", "kiwipiepy_model")

_maker: Maker | None = None  # one in each worker process


class QuestionSettings(BaseModel, frozen=True, extra="forbid"):
    """What is asked."""

    per_paragraph: int = Field(
        2, ge=1, le=100, description="maximum questions per paragraph, each from a different sentence"
    )
    seed: int = Field(0, ge=0, description="random seed for choosing sentences, answers and question forms")


@dataclass(frozen=True)
class Asked:
    """The questions on one paragraph of the document at `place` (file and line)."""

    place: str
    paragraph: str
    questions: tuple[Made, ...]


@dataclass(frozen=True)
class _Unit:
    """Work unit: the documents of a chunk; first, stop: their range where it was halved, of about `size` bytes.

    finished: file for its result, named by the digest of its inputs.
    """

    finished: Path
    chunk: Chunk
    size: int
    first: int = 0
    stop: int | None = None


@dataclass(frozen=True)
class _Result:
    asked: list[Asked]
    counts: Counter[str]


def generate(
    settings: QuestionSettings,
    source: SourceSettings,
    files: Sequence[File],
    *,
    workers: int | Workers,
    counts: Counter[str],
    partial: Path,
) -> Generator[Asked]:
    """The paragraphs on which there are questions. A function of seed and text alone.

    counts: updated with each part that has been yielded: documents, paragraphs, sentences, questions, and what was left
    out, by reason. `resumed`: parts that an earlier run had finished.
    partial: folder for finished parts. Parts that an interrupted run left there are reused.
    Raises CorpusError if a file cannot be read.
    """
    waiting: deque[Path] = deque()  # files of the results not yet yielded, in order; they need not exist yet

    def unfinished() -> Iterator[_Unit]:
        for chunk in chunks(source, files, _PART_BYTES):
            key = key_of(settings, _VERSION, chunk.source.model_dump_json(), *chunk.content, libraries=_LIBRARIES)
            path = partial / f"{key}.part"  # not .json, which a glob for the corpus could match
            waiting.append(path)
            if path.exists():
                counts["resumed"] += 1
            else:
                yield _Unit(path, chunk, chunk.size)

    def finished() -> Iterator[Asked]:
        while waiting and waiting[0].exists():
            result = _read(waiting.popleft())
            counts.update(result.counts)
            counts["parts"] += 1
            advance(result.counts["paragraphs"], f"{counts['questions']:,} questions")
            yield from result.asked

    with track("questions", total=None, unit="paragraphs") as advance:
        for outcome in run_units(
            _ask,
            unfinished(),
            workers=workers,
            deadline=lambda unit: max(_MIN_SECONDS, unit.size / MIB * _SECONDS_PER_MIB),
            split=_halves,
            initializer=_load_maker,
            initargs=(settings,),
        ):
            _write(outcome.unit.finished, _joined(outcome))
            yield from finished()
        yield from finished()  # the parts of an earlier run may be the last ones


def is_part(name: str) -> bool:
    """Whether a file of this name is a finished part, or one that was being written."""
    return re.fullmatch(r"(\.korbert-)?[0-9a-f]{32}\.part(\.tmp)?", name) is not None


def _write(path: Path, result: _Result) -> None:
    asked = [[one.place, one.paragraph, one.questions] for one in result.asked]
    write_whole(path, json.dumps({"asked": asked, "counts": result.counts}).encode())


def _read(path: Path) -> _Result:
    kept = read_object(path)
    asked = [Asked(place, paragraph, tuple(Made(*one) for one in made)) for place, paragraph, made in kept["asked"]]
    return _Result(asked, Counter(kept["counts"]))


def _load_maker(settings: QuestionSettings) -> None:
    """Loads Kiwi before the first unit, so that no deadline includes it."""
    global _maker
    options = AnalyzerOptions().model_dump()
    kiwi = load_kiwi(options, 1)
    calling = call_options(options)
    _maker = Maker(kiwi, calling, per_paragraph=settings.per_paragraph, seed=settings.seed)
    kiwi.tokenize("한국어", **calling)


def _ask(unit: _Unit) -> _Result:
    if _maker is None:
        raise AssertionError("the worker was started without Kiwi")
    _maker.counts = Counter()
    asked = []
    for row in rows(unit.chunk, unit.first, unit.stop):
        _maker.counts["documents"] += 1
        if row.reason is not None:
            _maker.counts[f"document_{row.reason}"] += 1
            continue
        for paragraph in dict.fromkeys(paragraphs(row.text)):  # ids are those of places and paragraphs
            if made := _maker.questions(paragraph):
                asked.append(Asked(row.place, paragraph, tuple(made)))
    return _Result(asked, _maker.counts)


def _halves(unit: _Unit) -> tuple[_Unit, _Unit] | None:
    """None for a single document."""
    stop = count_records(unit.chunk) if unit.stop is None else unit.stop
    if stop - unit.first < 2:
        return None
    middle, size = (unit.first + stop) // 2, unit.size // 2
    return replace(unit, stop=middle, size=size), replace(unit, first=middle, stop=stop, size=size)


def _joined(outcome: Outcome[_Unit, _Result]) -> _Result:
    """The result of a whole unit, or of the pieces that it was halved into, without the documents that were lost."""
    counts: Counter[str] = Counter()
    for result in outcome.results:
        counts.update(result.counts)
    for lost in outcome.lost:
        counts.update({"documents": 1, f"document_kiwi_{lost.reason}": 1})
    return _Result([asked for result in outcome.results for asked in result.asked], counts)
