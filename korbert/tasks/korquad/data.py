"""Reads KorQuAD 1.0 files: questions and predictions. Errors name the place of every fault."""

from pathlib import Path
from typing import Any

from korbert.errors import CorpusError
from korbert.tasks import squad
from korbert.tasks.questions import Dataset
from korbert.tasks.squad import AnswerPart, SquadForm

__all__ = ["AnswerPart", "parse", "read", "read_json", "read_predictions"]

_FORM = SquadForm("KorQuAD 1.0", '"id", "question", "answers": [{"text", "answer_start"}]')


def read(path: str | Path, *, answers: AnswerPart = "spans") -> Dataset:
    """The questions of an official file, as in squad.read; each has an answer."""
    return squad.read(path, _FORM, answers=answers)


def read_predictions(path: str | Path) -> dict[str, str]:
    """A `predictions.json`: one flat object, question id to answer text."""
    predictions = read_json(path)
    if not isinstance(predictions, dict) or not all(isinstance(text, str) for text in predictions.values()):
        raise CorpusError(f"{path}: not a predictions file; it must be one JSON object of question id and answer text")
    return predictions


def read_json(path: str | Path) -> Any:
    """Reads a JSON file. CorpusError if it is missing, or not JSON in UTF-8."""
    return squad.read_json(path, _FORM)


def parse(document: Any, name: str, *, answers: AnswerPart = "spans") -> Dataset:
    """As `read`, for parsed JSON. name: of the file, for errors."""
    return squad.parse(document, name, _FORM, answers=answers)
