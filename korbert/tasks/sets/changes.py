"""Converts rows of a set's own form to rows of its kind. ValueError for a row that cannot be converted."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from korbert.tasks.files.cells import Span
from korbert.tasks.files.roles import Role
from korbert.tasks.tagging.bio import read_bio

__all__ = [
    "EXTRA_ROLES",
    "chosen",
    "chosen_by_question",
    "entities",
    "relation",
    "truth",
    "unanswerable",
    "word_in_context",
    "words",
]

_Row: TypeAlias = dict[str, Any]

_TRUTH = {"true": "True", "1": "True", "false": "False", "0": "False"}


def truth(row: _Row) -> _Row:
    """Normalizes the label to True or False: TRUE, False, 1."""
    if row["label"].lower() not in _TRUTH:
        raise ValueError(f"label {row['label']!r} is neither true nor false")
    return row | {"label": _TRUTH[row["label"].lower()]}


def word_in_context(row: _Row) -> _Row:
    """KoBEST WiC: puts the word in question in brackets in both texts.

    The files have the brackets, except for one sentence (train, 방), which gets them at the word's first occurrence.
    """
    word = row.pop("word")
    for role in ("text", "pair"):
        text = row[role].strip()  # on the hub, some end in a tab
        row[role] = text if "[" in text else text.replace(word, f"[{word}]", 1)
    return truth(row)


def chosen(first: int = 0) -> Callable[[_Row], _Row]:
    """The label is the number of the right choice. first: the number of the first one."""

    def change(row: _Row) -> _Row:
        numbers = [str(number) for number in range(first, first + len(row["choices"]))]
        if row["label"] not in numbers:
            raise ValueError(f"label {row['label']!r} is none of {', '.join(numbers)}")
        return row | {"label": numbers.index(row["label"])}

    return change


def chosen_by_question(first: int = 0) -> Callable[[_Row], _Row]:
    """COPA: appends the question, cause (원인) or effect (결과), to the premise: `차가 찌그러졌다. 원인`."""

    def change(row: _Row) -> _Row:
        question = row.pop("question").strip()
        return chosen(first)(row | {"text": f"{row['text']} {question}"})

    return change


def entities(row: _Row) -> _Row:
    """KLUE-NER: the BIO tags of characters as spans of the text."""
    spans = [Span(*span) for span in read_bio(row["tags"])]
    return {"id": row["id"], "text": "".join(row["tokens"]), "spans": spans}


def words(row: _Row) -> _Row:
    """CoNLL-U: whether a space follows each token, from its column MISC."""
    if len(row["tokens"]) != len(row["tags"]):
        raise ValueError(f"{len(row['tokens'])} tokens and {len(row['tags'])} tags")
    return row | {"spaces": ["SpaceAfter=No" not in cell.split("|") for cell in row.pop("spaces")]}


def relation(row: _Row) -> _Row:
    """KLUE-RE: marks subject and object as KLUE-baseline does, `<subj>비틀즈</subj>가 ...`.

    klue_baseline/data/klue_re.py, _mark_entity_spans. Nested entities get nested marks.
    """
    text = row["text"]
    marks = []
    for role, mark in (("subject", "subj"), ("object", "obj")):
        start, end, word = row.pop(role)
        if text[start:end] != word:
            raise ValueError(f"the text has {text[start:end]!r} where the {role}, {word!r}, should be")
        marks += [(start, True, -end, f"<{mark}>"), (end, False, -start, f"</{mark}>")]
    for place, _, _, mark in sorted(marks, reverse=True):  # from the end, so that earlier offsets stay valid
        text = f"{text[:place]}{mark}{text[place:]}"
    return row | {"text": text}


def unanswerable(row: _Row) -> _Row:
    """KLUE-MRC: removes the answers of questions marked as impossible; other questions must have one."""
    impossible = row.pop("impossible")
    if not impossible and not row["answers"]:
        raise ValueError("a question without answer that is not said to have none")
    return row | {"answers": [] if impossible else row["answers"]}


def _entity(cell: Any) -> tuple[int, int, str]:
    """start, end (half-open), word."""
    try:
        return int(cell["start_idx"]), int(cell["end_idx"]) + 1, str(cell["word"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"is {cell!r}, not an object with word, start_idx and end_idx") from None


EXTRA_ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role("word", ("word",)),
        Role("subject", ("subject_entity",), _entity),
        Role("object", ("object_entity",), _entity),
        Role("spaces", ("misc",), list),
    )
}
"""Roles of single sets, in addition to those of `korbert.tasks.files`; no kind has them."""
