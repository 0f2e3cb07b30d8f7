"""Sections on predictions for the page of a task: one module per kind, each with `sections(kind, predicted)`."""

from collections.abc import Iterator
from typing import Any

from pipelines.artifacts.store import Json
from pipelines.reports.elements import Section
from pipelines.reports.kinds import (
    classification,
    multi_label,
    multiple_choice,
    question_answering,
    regression,
    token_classification,
)
from pipelines.reports.kinds.common import Predicted

__all__ = ["sections_of"]

_SECTIONS = {
    "multiple-choice": multiple_choice.sections,
    "classification": classification.sections,
    "regression": regression.sections,
    "token-classification": token_classification.sections,
}


def sections_of(kind: Any, predicted: Predicted, details: Json) -> Iterator[Section]:
    """The sections for a kind of task (korbert/tasks/kinds); empty for other kinds. details: as in scores.json."""
    if getattr(kind, "several", False):
        yield from multi_label.sections(kind, predicted)
    elif kind.name == "question-answering":
        yield from question_answering.sections(details)
    elif kind.name in _SECTIONS:
        yield from _SECTIONS[kind.name](kind, predicted)
