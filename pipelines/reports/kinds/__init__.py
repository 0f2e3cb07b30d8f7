"""Sections on predictions for the page of a task: one module per kind, each with `sections(kind, predicted)`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
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

__all__ = ["Predicted", "sections_of"]

Predicted = Iterable[tuple[dict[str, Any], Any]]
"""Each scored row with its prediction."""

_KINDS: Mapping[str, Callable[[Any, Predicted], Iterator[Section]]] = {
    "choice": multiple_choice.sections,
    "classification": classification.sections,
    "regression": regression.sections,
    "tagging": token_classification.sections,
}


def sections_of(kind: Any, predicted: Predicted, details: Json) -> Iterator[Section]:
    """The sections for a kind of task (korbert/tasks/kinds); empty for other kinds. details: as in scores.json."""
    if getattr(kind, "several", False):
        yield from multi_label.sections(kind, predicted)
    elif kind.name == "reading":
        yield from question_answering.sections(details)
    elif kind.name in _KINDS:
        yield from _KINDS[kind.name](kind, predicted)
