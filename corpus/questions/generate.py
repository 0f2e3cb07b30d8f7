"""Files of text -> questions, paragraph by paragraph, in the order of the files whatever the workers."""

import functools
import json
import re
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from pydantic import BaseModel, Field

from korbert.corpus.corpus_settings import MIB, SourceSettings
from korbert.corpus.execution.parts import key_of
from korbert.corpus.execution.workers import Outcome, RecordUnit, Workers, run_units
from korbert.corpus.questions.making import Made, Maker, paragraphs
from korbert.corpus.readers import Chunk, chunks, count_records, rows
from korbert.records import File
from korbert.system import read_object, track, write_bytes_atomically
from korbert.tokenization import Analyzer

_PART_BYTES = MIB // 4
# About ten times the time of Kiwi on a busy machine; a slower part is halved, down to the document at fault.
_SECONDS_PER_MIB = 1_000.0
_MIN_SECONDS = 120.0
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
class ParagraphQuestions:
    """The questions on one paragraph of the document at `place` (file and line)."""

    place: str
    paragraph: str
    questions: tuple[Made, ...]


@dataclass(frozen=True)
class _Unit(RecordUnit):
    """Work unit: documents of a chunk. finished: file for its result, named by the digest of its inputs."""

    finished: Path
    chunk: Chunk

    def count_records(self) -> int:
        return count_records(self.chunk)


def generate(
    settings: QuestionSettings,
    source: SourceSettings,
    files: Sequence[File],
    *,
    workers: int | Workers,
    counts: Counter[str],
    partial: Path,
) -> Generator[ParagraphQuestions]:
    """The paragraphs on which there are questions. A function of seed and text alone.

    counts: updated with each part that is yielded: documents, paragraphs, sentences, questions, and what was left out,
    by reason; `resumed`: parts that an interrupted run had finished. partial: the folder of finished parts. Raises
    CorpusError if a file cannot be read.
    """
    result_files: deque[Path] = deque()  # files of the results not yet yielded, in order; they need not exist yet

    def pending() -> Iterator[_Unit]:
        """The units of parts that are not finished. The files of all parts are added to `waiting`."""
        for chunk in chunks(source, files, _PART_BYTES):
            key = key_of(settings, _VERSION, chunk.source.model_dump_json(), *chunk.content, libraries=_LIBRARIES)
            result_files.append(partial / f"{key}.part")  # not .json, which a glob for the corpus could match
            if result_files[-1].exists():
                counts["resumed"] += 1
            else:
                yield _Unit(result_files[-1], chunk, size=chunk.size)

    with track("questions", total=None, unit="paragraphs") as advance:
        outcomes = run_units(
            _ask,
            pending(),
            workers=workers,
            deadline=lambda unit: max(_MIN_SECONDS, unit.size / MIB * _SECONDS_PER_MIB),
            split=_Unit.halves,
            initializer=functools.partial(_load_maker, settings),
        )
        for outcome in chain(outcomes, (None,)):  # the parts of an earlier run may be the last ones
            if outcome is not None:
                _write(outcome)
            while result_files and result_files[0].exists():
                part = read_object(result_files.popleft())
                counts.update(part["counts"], parts=1)
                advance(part["counts"].get("paragraphs", 0), f"{counts['questions']:,} questions")
                for place, paragraph, questions in part["asked"]:
                    yield ParagraphQuestions(place, paragraph, tuple(Made(*question) for question in questions))


def is_part(name: str) -> bool:
    """Whether a file of this name is a finished part."""
    return re.fullmatch(r"[0-9a-f]{32}\.part", name) is not None


def _load_maker(settings: QuestionSettings) -> None:
    """Loads Kiwi before the first unit, so that no deadline includes it."""
    global _maker
    analyzer = Analyzer()
    analyzer.analyze("한국어")
    _maker = Maker(analyzer, settings.per_paragraph, settings.seed)


def _write(outcome: Outcome[_Unit, tuple[list[ParagraphQuestions], Counter[str]]]) -> None:
    """Writes the finished part of a unit. If the unit was halved, the documents that were lost are only counted."""
    counts: Counter[str] = Counter()
    for lost in outcome.lost:
        counts.update({"documents": 1, f"document_kiwi_{lost.reason}": 1})
    records = []
    for piece_questions, piece_counts in outcome.results:
        records += [(entry.place, entry.paragraph, entry.questions) for entry in piece_questions]
        counts.update(piece_counts)
    write_bytes_atomically(outcome.unit.finished, json.dumps({"asked": records, "counts": counts}).encode())


def _ask(unit: _Unit) -> tuple[list[ParagraphQuestions], Counter[str]]:
    """The questions on the documents of a unit, and its counts."""
    assert _maker is not None
    _maker.counts = Counter()
    paragraph_questions = []
    for row in rows(unit.chunk, unit.first, unit.stop):
        _maker.counts["documents"] += 1
        if row.reason is not None:
            _maker.counts[f"document_{row.reason}"] += 1
            continue
        for paragraph in dict.fromkeys(paragraphs(row.text)):  # ids are those of places and paragraphs
            if made := _maker.questions(paragraph):
                paragraph_questions.append(ParagraphQuestions(row.place, paragraph, tuple(made)))
    return paragraph_questions, _maker.counts
