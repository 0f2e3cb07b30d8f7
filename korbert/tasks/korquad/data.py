"""KorQuAD 1.0 files: questions and predictions, read with every fault named by its place."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from korbert.errors import CorpusError
from korbert.tasks.questions import Answer, Dataset, Question, refuse_repeated_ids

__all__ = ["AnswerPart", "parse", "read", "read_json", "read_predictions"]

_FORMAT = (
    'a KorQuAD 1.0 file is {"data": [{"title", "paragraphs": [{"context", "qas": '
    '[{"id", "question", "answers": [{"text", "answer_start"}]}]}]}]}'
)
_NAMES = {dict: "an object", list: "a list", str: "a string", int: "a whole number"}

AnswerPart = Literal["spans", "texts", "none"]


def read(path: str | Path, *, answers: AnswerPart = "spans") -> Dataset:
    """The questions of an official file.

    answers: "texts" reads no answer_start (enough to score), "none" reads no answers (a submission).
    CorpusError names file, place (`data[3].paragraphs[0].qas[1]`) and what is there.
    """
    return parse(read_json(path), str(path), answers=answers)


def read_predictions(path: str | Path) -> dict[str, str]:
    """A `predictions.json`: one flat object, question id to answer text."""
    predictions = read_json(path)
    if not isinstance(predictions, dict) or not all(isinstance(text, str) for text in predictions.values()):
        raise CorpusError(f"{path}: not a predictions file; it must be one JSON object of question id and answer text")
    return predictions


def read_json(path: str | Path) -> Any:
    """A JSON file as it is. CorpusError where there is none, or where it is not JSON in UTF-8."""
    try:
        return json.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file; give a KorQuAD 1.0 JSON file") from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}: byte {error.start}: not UTF-8; {_FORMAT}, in UTF-8") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError of another kind
        raise CorpusError(f"{path}: not JSON ({error}); {_FORMAT}") from None


def parse(document: Any, name: str, *, answers: AnswerPart = "spans") -> Dataset:
    """As `read`, of JSON that is parsed already. name: what errors call it."""
    root = _Node(document, name, "")
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
                questions.append(Question(node.string("id"), node.string("question"), len(contexts) - 1, right))
    if not questions:
        raise CorpusError(f"{name}: no question in it; {_FORMAT}")
    refuse_repeated_ids(questions, name)
    return Dataset(tuple(titles), tuple(contexts), tuple(questions))


def _answers(question: "_Node", context: str | None) -> Iterator[Answer]:
    """context: where the answers must stand; None leaves their place unread, as 0."""
    nodes = question.items("answers")
    if not nodes:
        raise CorpusError(f"{question.place}: question {question.string('id')} has no answer; give it one")
    for node in nodes:
        if context is None:
            yield Answer(node.string("text"), 0)
            continue
        answer = Answer(node.string("text"), node.integer("answer_start"))
        start, end = answer.span
        there = context[max(start, 0) : max(end, 0)]
        if not answer.text or start < 0 or there != answer.text:
            raise CorpusError(
                f"{node.place}: question {question.string('id')}: the context has {there!r} at answer_start {start}, "
                f"the answer is {answer.text!r}; answer_start counts characters from 0"
            )
        yield answer


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of the JSON document, and where it stands."""

    value: Any
    file: str
    path: str

    @property
    def place(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def string(self, key: str) -> str:
        return str(self._get(key, str))

    def integer(self, key: str) -> int:
        return int(self._get(key, int))

    def items(self, key: str) -> list["_Node"]:
        path = f"{self.path}.{key}" if self.path else key
        return [_Node(item, self.file, f"{path}[{i}]") for i, item in enumerate(self._get(key, list))]

    def _get(self, key: str, kind: type) -> Any:
        if not isinstance(self.value, dict):
            raise CorpusError(f"{self.place}: {_kind(self.value)} where an object should be; {_FORMAT}")
        if key not in self.value:
            raise CorpusError(f'{self.place}: no "{key}" there; {_FORMAT}')
        value = self.value[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise CorpusError(f'{self.place}: "{key}" is {_kind(value)} and should be {_NAMES[kind]}; {_FORMAT}')
        return value


def _kind(value: Any) -> str:
    return "null" if value is None else _NAMES.get(type(value), type(value).__name__)
