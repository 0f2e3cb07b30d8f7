"""Detects the kind of task of a labelled file from its columns and first rows."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from korbert.errors import CorpusError
from korbert.records.form import Form
from korbert.records.table import Fault
from korbert.tasks.files import ROLES, columns_of
from korbert.tasks.files.cells import is_empty
from korbert.tasks.files.columns import choose_columns, first_cells, flag_columns
from korbert.tasks.files.exports import open_export

__all__ = ["Detected", "detect"]

_ROWS = 1_000
_MANY_NUMBERS = 20  # more distinct numbers than this are scores, not labels


class Detected(NamedTuple):
    """The kind, the columns of its roles that have unusual names, and the reason."""

    kind: str
    columns: Mapping[str, Sequence[str]]
    why: str


def detect(path: Path, columns: Mapping[str, Sequence[str]], form: Form = "auto", *, several: bool = False) -> Detected:
    """Detects the kind of task of a training file. columns: role -> column, as named by the user.

    several: whether the user said that a text has any number of labels. Raises CorpusError if no kind fits the columns,
    and for a missing column.
    """
    table = open_export(path, form, columns)
    named = [role for role in ROLES.values() if role.name in columns]
    columns = {**columns, **choose_columns(named, table.columns, columns, str(path))}
    first = first_cells(table)

    def has(role: str) -> str:
        """The column of a role: given, or of a usual name and with its cells; "" without one."""
        wanted = replace(ROLES[role], required=False)
        given = columns.get(role) or columns_of(wanted, table.columns, first)
        return given[0] if given else ""

    for kind, role in (("tagging", "tags"), ("tagging", "spans")):
        if column := has(role):
            beside = "tokens" if has("tokens") else "text" if role == "spans" else ""
            if beside and has(beside) and column not in columns.get("label", ()):
                return Detected(kind, {}, f"{beside} from {has(beside)!r}, {role} from {column!r}")
    firsts = {f"{name}{number}" for name in ROLES["choices"].series if name for number in ("1", "_1")}
    if column := has("choices") or next((one for one in table.columns if one.casefold() in firsts), ""):
        return Detected("choice", {}, f"choices from {column!r}")
    if (slots := has("slots")) and (text := has("text")):
        return Detected("slots", {}, f"text from {text!r}, slots from {slots!r}")
    question, context, answers = map(has, ("question", "context", "answers"))
    if question and context and answers and answers not in columns.get("label", ()):
        return Detected(
            "reading", {}, f"question from {question!r}, context from {context!r}, answers from {answers!r}"
        )
    label = has("labels" if several else "label") or next(iter(columns.get("label", ())), "")
    text = has("text")
    if (score := has("score")) and not label:
        return Detected("regression", {}, f"score from {score!r}")
    if not label:
        flags = [column for column in flag_columns(table.columns, first) if column != text]
        shown = ", ".join(map(repr, flags))
        if len(flags) > 1 and several:
            return Detected("classification", {}, f"text from {text!r}, label from {shown}: {len(flags)} labels")
        if len(flags) > 1:
            raise CorpusError(
                f"{path}: columns {shown} hold 0 and 1: if each says whether a label holds, use --several; else name"
                " the column of labels with --label"
            )
        if lists := has("labels"):
            raise CorpusError(f"{path}: column {lists!r} holds lists of labels: use --several, for any number of them")
        shown = ", ".join(table.columns)
        raise CorpusError(f"{path}: no column of labels or scores among {shown}: name it with --label, or --column")
    records = islice(table.read([label]), _ROWS)
    cells = [cells[0] for _, cells in records if not isinstance(cells, Fault) and not is_empty(cells[0])]
    numbers = {number for cell in cells if (number := _number(cell)) is not None}
    of_numbers = len(cells) > 0 and all(_number(cell) is not None for cell in cells)
    if of_numbers and (len(numbers) > _MANY_NUMBERS or any(not number.is_integer() for number in numbers)):
        return Detected("regression", {"score": (label,)}, f"score from {label!r}: {len(numbers)} numbers")
    held = ", ".join(map(repr, columns.get("label", (label,))))
    count = len({unicodedata.normalize("NFC", str(cell).strip()) for cell in cells})
    counted = "" if several or len(cells) == _ROWS else f": {count:,} labels"
    return Detected("classification", {}, f"text from {text!r}, label from {held}{counted}")


def _number(cell: object) -> float | None:
    try:
        return None if isinstance(cell, bool) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
