"""The kinds of tasks, one file each; KINDS lists them. Settings of all kinds: sections.py.

1. base.py: the interface of a kind: roles of a row, examples, model, loss, predictions, scores.
2. texts.py: one text or two as a row of pieces.
3. classification.py, regression.py, multiple_choice.py, token_classification.py,
   question_answering.py, slots.py, embedding.py: the kinds.
4. detecting.py: the kind of a labelled file.
"""

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from korbert.errors import SettingsError

if TYPE_CHECKING:
    from korbert.tasks.kinds.base import Kind
    from korbert.tasks.kinds.sections import TaskSection

__all__ = ["KINDS", "Entry", "kind_of_task", "section_class"]


@dataclass(frozen=True)
class Entry:
    """A kind: its name in recipes, the module of its class, the class, its section class, and a description."""

    name: str
    module: str
    kind: str
    section: str
    about: str

    @property
    def kind_class(self) -> "type[Kind]":
        found: type[Kind] = getattr(importlib.import_module(self.module), self.kind)
        return found

    @property
    def section_class(self) -> "type[TaskSection]":
        found: type[TaskSection] = getattr(importlib.import_module("korbert.tasks.kinds.sections"), self.section)
        return found


def _entry(name: str, about: str, module: str | None = None) -> Entry:
    return Entry(name, f"korbert.tasks.kinds.{module or name}", name.capitalize(), f"{name.capitalize()}Section", about)


KINDS: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        _entry("classification", "labels of a text or a pair of texts"),
        _entry("regression", "a number for a text or a pair of texts"),
        _entry("choice", "the right one of several continuations or answers", "multiple_choice"),
        _entry("tagging", "labels of spans or words", "token_classification"),
        _entry("reading", "answers to questions, cut out of texts", "question_answering"),
        _entry("slots", "values of described slots, cut out of texts"),
        _entry("embedding", "vectors of texts, near where the texts are alike"),
    )
}


def section_class(raw: Mapping[str, Any]) -> "type[TaskSection]":
    """The class of a section [tasks.NAME] of a recipe: from its `kind`, or from the known data set in `set`.

    ValueError for an unknown kind or set, with the closest name.
    """
    kind = raw.get("kind")
    if kind is None and isinstance(raw.get("set"), str) and raw["set"]:
        from korbert.tasks.sets import known_set

        try:
            kind = known_set(raw["set"]).kind
        except SettingsError as error:
            raise ValueError(f"set: {error}") from None
    name = "classification" if kind is None else str(kind)
    if name not in KINDS:
        near = difflib.get_close_matches(name, KINDS, 1)
        hint = f": did you mean {near[0]}?" if near else ""
        raise ValueError(f"kind: no kind {name!r} among {', '.join(KINDS)}{hint}")
    return KINDS[name].section_class


def kind_of_task(task: Mapping[str, Any], place: str) -> "Kind":
    """The task of a fine-tuned model, from `task` of its config.json.

    SettingsError, which names `place`, if there is none, ModelError for an invalid field.
    """
    fields = dict(task)
    entry = KINDS.get(str(fields.pop("kind", None)))
    if entry is None:
        raise SettingsError(f"{place}: was not fine-tuned by `korbert finetune`: name another folder")
    return entry.kind_class.of_task(fields, place)
