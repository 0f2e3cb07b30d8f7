"""Questions, contexts and gold answers: the data model of all reading tasks."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from korbert.errors import CorpusError

__all__ = [
    "Answer",
    "AnswerMetrics",
    "Dataset",
    "Question",
    "is_held_article",
    "join",
    "refuse_repeated_ids",
    "split_by_article",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A gold answer: `context[start : start + len(text)] == text`, start in code points."""

    text: str
    start: int

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Question:
    """A question on `contexts[context]` of its Dataset.

    `answers` is empty if it has none, or if the file was read without answers.
    """

    id: str
    text: str
    context: int
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Dataset:
    """The questions of one or more files, in order; `titles[i]` is the article of `contexts[i]`."""

    titles: tuple[str, ...]
    contexts: tuple[str, ...]
    questions: tuple[Question, ...]


class AnswerMetrics(NamedTuple):
    """Scores of a prediction against the gold answers: exact match, and overlap from 0 to 1."""

    exact_match: Callable[[str, Sequence[str]], bool]
    f1: Callable[[str, Sequence[str]], float]


def refuse_repeated_ids(questions: Sequence[Question], name: str) -> None:
    """Raises CorpusError if two questions have the same id. name: of the questions, in the error."""
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise CorpusError(f"{name}: question id {question.id} occurs twice; ids must be unique")
        seen.add(question.id)


def is_held_article(title: str) -> bool:
    """Whether the questions of an article are held out: if the SHA-256 of its title, as a number, is 0 modulo 5."""
    return int(hashlib.sha256(title.encode("utf-8", "surrogatepass")).hexdigest(), 16) % 5 == 0


def split_by_article(dataset: Dataset) -> tuple[Dataset, Dataset]:
    """(train, valid), by `is_held_article`.

    For use with a single official file. Scores on such a split are not comparable with published ones.
    """
    held = list(map(is_held_article, dataset.titles))
    return _select(dataset, [not h for h in held]), _select(dataset, held)


def _select(dataset: Dataset, keep: Sequence[bool]) -> Dataset:
    kept = [i for i, k in enumerate(keep) if k]
    position = {old: new for new, old in enumerate(kept)}
    return Dataset(
        tuple(dataset.titles[i] for i in kept),
        tuple(dataset.contexts[i] for i in kept),
        tuple(
            Question(q.id, q.text, position[q.context], q.answers) for q in dataset.questions if q.context in position
        ),
    )


def join(datasets: Mapping[str, Dataset]) -> Dataset:
    """Concatenates data sets, in order. datasets: file name -> its questions. CorpusError for an id in two of them."""
    titles: list[str] = []
    contexts: list[str] = []
    questions: list[Question] = []
    for dataset in datasets.values():
        shift = len(contexts)
        titles += dataset.titles
        contexts += dataset.contexts
        questions += [Question(q.id, q.text, q.context + shift, q.answers) for q in dataset.questions]
    refuse_repeated_ids(questions, ", ".join(datasets))
    return Dataset(tuple(titles), tuple(contexts), tuple(questions))
