"""Detects the kind of task of a labelled file from its columns and first rows."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from korbert.errors import CorpusError
from korbert.records import open_table
from korbert.records.form import Form
from korbert.records.table import Fault
from korbert.tasks.files import ROLES, columns_of
from korbert.tasks.files.cells import is_empty
from korbert.tasks.files.columns import choose_columns

__all__ = ["Detected", "detect"]

_ROWS = 1_000
_MANY_NUMBERS = 20  # more distinct numbers than this are scores, not labels


class Detected(NamedTuple):
    """The kind, the columns of its roles that have unusual names, and the reason."""

    kind: str
    columns: Mapping[str, Sequence[str]]
    why: str


def detect(path: Path, columns: Mapping[str, Sequence[str]], form: Form = "auto") -> Detected:
    """Detects the kind of task of a training file. columns: role -> column, as named by the user.

    Raises CorpusError if no kind fits the columns, and for a missing column.
    """
    table = open_table(path, form)
    choose_columns([role for role in ROLES.values() if role.name in columns], table.columns, columns, str(path))

    def has(role: str) -> str:
        """The column of a role: given, or of a usual name; "" without one."""
        given = columns.get(role) or columns_of(ROLES[role], table.columns)
        return given[0] if given else ""

    for kind, role in (("tagging", "tags"), ("tagging", "spans")):
        if column := has(role):
            beside = has("tokens") or (role == "spans" and has("text"))
            if beside and column not in columns.get("label", ()):
                return Detected(kind, {}, f"columns {beside!r} and {column!r}")
    firsts = {f"{name}{number}" for name in ROLES["choices"].series if name for number in ("1", "_1")}
    if column := has("choices") or next((one for one in table.columns if one.casefold() in firsts), ""):
        return Detected("choice", {}, f"column {column!r}")
    if (slots := has("slots")) and (text := has("text")):
        return Detected("slots", {}, f"columns {text!r} and {slots!r}")
    question, context, answers = map(has, ("question", "context", "answers"))
    if question and context and answers and answers not in columns.get("label", ()):
        return Detected("reading", {}, f"columns {question!r}, {context!r} and {answers!r}")
    label = has("label")
    if (score := has("score")) and not label:
        return Detected("regression", {}, f"column {score!r}")
    if not label:
        shown = ", ".join(table.columns)
        raise CorpusError(f"{path}: no column of labels or scores among {shown}: name it with --label, or --column")
    records = islice(table.read([label]), _ROWS)
    cells = [cells[0] for _, cells in records if not isinstance(cells, Fault) and not is_empty(cells[0])]
    numbers = {number for cell in cells if (number := _number(cell)) is not None}
    of_numbers = len(cells) > 0 and all(_number(cell) is not None for cell in cells)
    if of_numbers and (len(numbers) > _MANY_NUMBERS or any(not number.is_integer() for number in numbers)):
        return Detected("regression", {"score": (label,)}, f"column {label!r} holds {len(numbers)} different numbers")
    return Detected("classification", {}, f"column {label!r} holds labels")


def _number(cell: object) -> float | None:
    try:
        return None if isinstance(cell, bool) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
