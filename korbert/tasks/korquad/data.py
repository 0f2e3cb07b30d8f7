"""Reads KorQuAD 1.0 files: questions and predictions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from korbert.errors import CorpusError
from korbert.messages import join_messages
from korbert.records import open_text, read_value, temporary_copy
from korbert.tasks.files import ROLES, TaskRows, read_rows


def read(path: str | Path) -> TaskRows:
    """The questions of an official file: id, title, context, question, and answers, None if the file has none.

    A question or context may be empty. CorpusError names the first faulty questions: all of them count in the score.
    """
    roles = [replace(ROLES["id"], required=True)]
    roles += [replace(ROLES[name], empty=str) for name in ("context", "question")]
    roles += [replace(ROLES[name], required=False) for name in ("title", "answers")]
    with _rereadable(Path(path)) as file:
        rows = read_rows(file, roles, form="json", columns={"id": "id"})
    for dropped in rows.dropped.values():
        raise CorpusError("{first}: correct it: every question counts in the score", first=join_messages(dropped.first))
    return rows


def read_predictions(path: str | Path) -> dict[str, str]:
    """A `predictions.json`: one flat object, question id to answer text."""
    with _rereadable(Path(path)) as file:
        predictions = read_value(open_text(file))
    if not isinstance(predictions, dict) or not all(isinstance(text, str) for text in predictions.values()):
        raise CorpusError(
            "{path}: not a predictions file; it must be one JSON object of question id and answer text", path=path
        )
    return predictions


@contextmanager
def _rereadable(path: Path) -> Iterator[Path]:
    """The file, or a copy of a pipe, which can be read only once."""
    if not path.is_fifo():
        yield path
        return
    with path.open("rb") as pipe, temporary_copy(pipe, str(path)) as copy:
        yield copy
