"""Files of text -> questions, paragraph by paragraph, in the order of the files whatever the workers."""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from corpus.execution.workers import Outcome, Workers, run_units
from corpus.questions.making import Made, Maker, paragraphs
from corpus.readers import Chunk, chunks, count_records, rows
from corpus.readers.records import File
from corpus.settings import MIB, SourceSettings
from korbert.progress import track
from korbert.tokenization.morphemes import call_options, load_kiwi
from korbert.tokenization.settings import AnalyzerOptions

__all__ = ["Asked", "QuestionSettings", "generate"]

_PART_BYTES = MIB // 4
# About ten times what Kiwi takes on a busy machine; a part that takes longer is halved, down to the document at fault.
_SECONDS_PER_MIB, _MIN_SECONDS = 1_000.0, 120.0

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
    """Work unit: the documents of a chunk; first, stop: their range where it was halved, of about `size` bytes."""

    number: int
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
) -> Generator[Asked]:
    """The paragraphs on which there are questions. A function of seed and text alone.

    counts: gets the numbers of documents, paragraphs, sentences and questions, and of what was left out by reason, of
    the parts of the files that have been given out. CorpusError if a file cannot be read.
    """
    finished: dict[int, _Result] = {}  # parts that wait for an earlier one
    units = (_Unit(i, chunk, chunk.size) for i, chunk in enumerate(chunks(source, files, _PART_BYTES)))
    with track("questions", total=None, unit="paragraphs") as advance:
        for outcome in run_units(
            _ask,
            units,
            workers=workers,
            deadline=lambda unit: max(_MIN_SECONDS, unit.size / MIB * _SECONDS_PER_MIB),
            split=_halves,
            initializer=_load_maker,
            initargs=(settings,),
        ):
            finished[outcome.unit.number] = _joined(outcome)
            while (result := finished.pop(counts["parts"], None)) is not None:
                counts.update(result.counts)
                counts["parts"] += 1
                advance(result.counts["paragraphs"], f"{counts['questions']:,} questions")
                yield from result.asked


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
