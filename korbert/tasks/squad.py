"""Reads SQuAD-format files: KorQuAD 1.0, SQuAD 1.1 and 2.0, KLUE-MRC. Errors name the place of every fault."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from korbert.errors import CorpusError
from korbert.records.inputs import copied
from korbert.records.jsons import read_value
from korbert.records.table import open_text
from korbert.tasks.questions import Answer, Dataset, Question, refuse_repeated_ids

__all__ = ["SQUAD", "AnswerPart", "SquadForm", "parse", "read", "read_json"]

AnswerPart = Literal["spans", "texts", "none"]

_NAMES = {dict: "an object", list: "a list", str: "a string", int: "a whole number"}


@dataclass(frozen=True)
class SquadForm:
    """The file format of one data set.

    name: of the data set, for errors. question: the keys of a question, for errors. ids: the keys that may hold its id;
    the first present one is used. unanswerable: whether a question may have no answer.
    """

    name: str
    question: str
    ids: tuple[str, ...] = ("id",)
    unanswerable: bool = False

    def __str__(self) -> str:
        shape = f'{{"data": [{{"title", "paragraphs": [{{"context", "qas": [{{{self.question}}}]}}]}}]}}'
        return f"a {self.name} file is {shape}"


_ANSWERS = '"answers": [{"text", "answer_start"}]'

SQUAD = SquadForm("SQuAD", f'"id" or "guid", "question", {_ANSWERS}, "is_impossible"', ("id", "guid"), True)
"""SQuAD 1.1 and 2.0, and KLUE-MRC, whose ids are called guid.

A question has no answer if `is_impossible` is true, or if it is absent and `answers` are empty;
`plausible_answers` are ignored.
"""


def read(path: str | Path, form: SquadForm = SQUAD, *, answers: AnswerPart = "spans") -> Dataset:
    """The questions of a file.

    answers: "texts" reads no answer_start (enough to score), "none" reads no answers (a submission).
    CorpusError names file, place (`data[3].paragraphs[0].qas[1]`) and what is there.
    """
    return parse(read_json(path, form), str(path), form, answers=answers)


def read_json(path: str | Path, form: SquadForm = SQUAD) -> Any:
    """Reads a JSON file, as any other of korbert.records. CorpusError if it is missing, or not JSON."""
    path = Path(path)
    if not path.exists():
        raise CorpusError(f"{path}: no such file; give a {form.name} JSON file")
    try:
        if path.is_file() or path.is_dir():
            return read_value(open_text(path))
        with path.open("rb") as pipe, copied(pipe, str(path)) as copy:
            return read_value(open_text(copy))
    except CorpusError as error:
        raise CorpusError(f"{error}; {form}") from None


def parse(document: Any, name: str, form: SquadForm = SQUAD, *, answers: AnswerPart = "spans") -> Dataset:
    """As `read`, for parsed JSON. name: of the file, for errors."""
    root = _Node(document, name, "", form)
    titles: list[str] = []
    contexts: list[str] = []
    questions: list[Question] = []
    for article in root.items("data"):
        title = article.string("title") if article.has("title") else ""
        for paragraph in article.items("paragraphs"):
            titles.append(title)
            contexts.append(paragraph.string("context"))
            for node in paragraph.items("qas"):
                right = () if answers == "none" else tuple(_answers(node, contexts[-1] if answers == "spans" else None))
                questions.append(Question(_id(node), node.string("question"), len(contexts) - 1, right))
    if not questions:
        raise CorpusError(f"{name}: no question in it; {form}")
    refuse_repeated_ids(questions, name)
    return Dataset(tuple(titles), tuple(contexts), tuple(questions))


def _id(question: "_Node") -> str:
    keys = question.form.ids
    return question.string(next((key for key in keys if question.has(key)), keys[0]))


def _answers(question: "_Node", context: str | None) -> Iterator[Answer]:
    """context: the text that must contain the answers; None: positions are not read and are 0."""
    for node in _answer_nodes(question):
        if context is None:
            yield Answer(node.string("text"), 0)
            continue
        answer = Answer(node.string("text"), node.integer("answer_start"))
        start, end = answer.span
        there = context[max(start, 0) : max(end, 0)]
        if not answer.text or start < 0 or there != answer.text:
            raise CorpusError(
                f"{node.place}: question {_id(question)}: the context has {there!r} at answer_start {start}, "
                f"the answer is {answer.text!r}; answer_start counts characters from 0"
            )
        yield answer


def _answer_nodes(question: "_Node") -> list["_Node"]:
    """Empty only for a question that may have no answer."""
    if not question.form.unanswerable:
        nodes = question.items("answers")
        if not nodes:
            raise CorpusError(f"{question.place}: question {_id(question)} has no answer; give it one")
        return nodes
    said = question.boolean("is_impossible") if question.has("is_impossible") else None
    nodes = [] if said and not question.has("answers") else question.items("answers")
    if said is not None and said == bool(nodes):
        there, do = ("an answer", "take one of the two out") if said else ("no answer", "give it one, or say true")
        raise CorpusError(
            f'{question.place}: question {_id(question)} has {there}, and "is_impossible" is {str(said).lower()}; {do}'
        )
    return nodes


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of the JSON document, and where it stands."""

    value: Any
    file: str
    path: str
    form: SquadForm

    @property
    def place(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def string(self, key: str) -> str:
        return str(self._get(key, str))

    def integer(self, key: str) -> int:
        return int(self._get(key, int))

    def boolean(self, key: str) -> bool:
        return bool(self._get(key, bool))

    def items(self, key: str) -> list["_Node"]:
        path = f"{self.path}.{key}" if self.path else key
        return [_Node(item, self.file, f"{path}[{i}]", self.form) for i, item in enumerate(self._get(key, list))]

    def _get(self, key: str, kind: type) -> Any:
        if not isinstance(self.value, dict):
            raise CorpusError(f"{self.place}: {_kind(self.value)} where an object should be; {self.form}")
        if key not in self.value:
            raise CorpusError(f'{self.place}: no "{key}" there; {self.form}')
        value = self.value[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wanted = _NAMES.get(kind, "true or false")
            raise CorpusError(f'{self.place}: "{key}" is {_kind(value)} and should be {wanted}; {self.form}')
        return value


def _kind(value: Any) -> str:
    return "null" if value is None else _NAMES.get(type(value), type(value).__name__)
