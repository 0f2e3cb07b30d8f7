"""The kinds of tasks, one file each; KINDS lists them. Settings of all kinds: sections.py.

1. kind.py: the interface of a kind: roles of a row, examples, model, loss, predictions, scores.
2. texts.py: one text or two as a row of pieces.
3. classification.py, regression.py, multiple_choice.py, token_classification.py,
   question_answering.py, slots.py, embedding.py, rerank.py: the kinds.
4. detecting.py: the kind of a labelled file.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from korbert.errors import SettingsError
from korbert.messages import Message, reason
from korbert.names import did_you_mean
from korbert.tasks import sets

if TYPE_CHECKING:
    from korbert.tasks.kinds.kind import Kind
    from korbert.tasks.kinds.sections import TaskSection

__all__ = ["ALIASES", "KINDS", "RUNGS", "Entry", "kind_of_task", "section_class"]

RUNGS = ("words", "vectors", "encoder")
"""What a classifier is made of; a tagger has no words (docs/how-to/tasks.md)."""


@dataclass(frozen=True)
class Entry:
    """A kind by its name in recipes.

    `question-answering` is the class QuestionAnswering of question_answering.py, with QuestionAnsweringSection of
    sections.py, which needs no PyTorch.
    """

    name: str

    @property
    def kind_class(self) -> "type[Kind]":
        kind: type[Kind] = pkgutil.resolve_name(f"{__name__}.{self.name.replace('-', '_')}:{self._class_name}")
        return kind

    @property
    def section_class(self) -> "type[TaskSection]":
        section: type[TaskSection] = pkgutil.resolve_name(f"{__name__}.sections:{self._class_name}Section")
        return section

    @property
    def _class_name(self) -> str:
        return self.name.title().replace("-", "")


KINDS: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("classification"),  # labels of a text or a pair of texts
        Entry("regression"),  # a number for a text or a pair of texts
        Entry("multiple-choice"),  # the right one of several continuations or answers
        Entry("token-classification"),  # labels of spans or words
        Entry("question-answering"),  # answers to questions, cut out of texts
        Entry("slots"),  # values of described slots, cut out of texts: also of slots that training did not have
        Entry("embedding"),  # vectors of texts: near each other if the texts are alike or one answers the other
        Entry("rerank"),  # how well a passage answers a query, read together
    )
}

ALIASES = {"choice": "multiple-choice", "reading": "question-answering", "tagging": "token-classification"}
"""Short names of kinds, which recipes and `--kind` take, too."""


def section_class(raw: Mapping[str, object]) -> "type[TaskSection]":
    """The class of a section [tasks.NAME] of a recipe: from its `kind`, or from the known data set in `set`.

    ValueError for an unknown kind or set, with the closest name.
    """
    kind = raw.get("kind")
    name = raw.get("set")
    if kind is None and isinstance(name, str) and name:
        try:
            kind = sets.known_set(name).kind
        except SettingsError as error:
            raise ValueError(Message("set: {fault}", fault=reason(error))) from None
    name = "classification" if kind is None else ALIASES.get(str(kind), str(kind))
    if name not in KINDS:
        hint = did_you_mean(name, KINDS) or Message("name one of these")
        raise ValueError(
            Message("kind: no kind {name!r} among {known}: {hint}", name=name, known=", ".join(KINDS), hint=hint)
        )
    return KINDS[name].section_class


def kind_of_task(task: Mapping[str, object], place: str) -> "Kind":
    """The task of a fine-tuned model, from `task` of its config.json.

    SettingsError, which names `place`, if there is none, ModelError for an invalid field.
    """
    fields = dict(task)
    entry = KINDS.get(str(fields.pop("kind", None)))
    if entry is None:
        raise SettingsError("{place}: was not fine-tuned by `korbert finetune`: name another folder", place=place)
    return entry.kind_class.of_task(fields, place)
