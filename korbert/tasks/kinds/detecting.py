"""Detects the kind of task of a labelled file from its columns and first rows."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from korbert.errors import CorpusError
from korbert.messages import Message, argument, join_messages, reason
from korbert.names import BLANK, nfc
from korbert.records import Fault, Form, Table, is_empty, open_table, value_in
from korbert.tasks.files import ROLES, choose_columns, column_names, columns_of, columns_summary, flag_columns, score

_ROWS = 1_000
_MANY_NUMBERS = 20  # more distinct numbers than this are scores, not labels


class Detected(NamedTuple):
    """The kind, the columns of its roles that have unusual names, and the reason.

    several: whether a text has any number of labels.
    """

    kind: str
    columns: Mapping[str, Sequence[str]]
    why: Message
    several: bool = False


def detect(path: Path, columns: Mapping[str, Sequence[str]], form: Form = "auto", *, several: bool = False) -> Detected:
    """Detects the kind of task of a training file. columns: role -> column, as named by the user.

    several: whether the user said that a text has any number of labels. Raises CorpusError if no kind fits the columns,
    and for a missing column; SettingsError for an unknown form and for a role in `columns` that does not exist.
    """
    taken = {column for names in columns.values() for column in names}
    table = open_table(path, form, taken.issubset)
    place = table.place(str(path))
    named = [role for role in ROLES.values() if role.name in columns]
    columns = {**columns, **choose_columns(named, table.columns, columns, place)}

    def has(role: str) -> str:
        """The column of a role: named by the user, or with a usual name and cells of the role; "" if there is none."""
        wanted = replace(ROLES[role], required=False)
        detected = columns.get(role) or columns_of(wanted, table.columns, table.first)
        return detected[0] if detected else ""

    # Kinds whose columns hold more than labels come first, pairs without labels last.
    if detected := _spans_or_answers(table, has, columns.get("label", ())):
        return detected
    several = several or any(_holds_lists(table, name) for name in columns.get("label", (has("labels"),)) if name)
    text = has("text")
    label_role = "labels" if several else "label"
    label = next(iter(columns.get("label", ())), "") or has(label_role)
    flags = [column for column in flag_columns(table.columns, table.first) if column != text]
    if not text and (label or has("score") or (several and flags)):
        raise CorpusError(
            "{place}: no column of texts among {listed}: name it with {option}",
            place=place,
            listed=column_names(table.columns),
            option=argument("text"),
        )
    if label:
        return _by_cells(table, label, text, columns.get("label", (label,)), several=several)
    if len(flags) > 1 and several:
        roles = columns_summary({"text": [text], "label": flags})
        return Detected("classification", {}, Message("{roles}: {count:,} labels", roles=roles, count=len(flags)), True)
    if scores := has("score"):
        return Detected("regression", {}, columns_summary({"score": [scores]}))
    if len(flags) > 1:
        raise CorpusError(
            "{path}: columns {shown} hold 0 and 1: if each says whether a label holds, use "
            "{option_several}; else name the column of labels with {option_label}",
            path=path,
            shown=", ".join(map(repr, flags)),
            option_several=argument("several"),
            option_label=argument("label"),
        )
    faults = join_messages(_unfit(table))
    if (query := has("question")) and (passage := has("context")) and not faults:
        pairs = {"text": (query,), "pair": (passage,)}
        why = Message(
            "pairs without labels, query from {query!r}, passage from {passage!r}", query=query, passage=passage
        )
        return Detected("embedding", pairs, why)
    # A name that is also a cell of its column, or a number, is a cell of a file without a line of names.
    if any(column in table.first[column] or re.fullmatch(r"[-+.\d]+", column) for column in table.columns):
        raise CorpusError(
            "{place}: the first line looks like a row ({columns}): add a line above it that names the "
            "columns, such as text and label, with the same separator; if it names them, say which with "
            "{option_text} and {option_label}",
            place=place,
            columns=", ".join(table.columns)[:60],
            option_text=argument("text"),
            option_label=argument("label"),
        )
    shown: str = column_names(table.columns)
    if faults:
        shown = Message("{columns} ({faults})", columns=shown, faults=faults)
    raise CorpusError(
        "{place}: no column of labels or scores among {shown}: name it with {option_label}, or {option_column}",
        place=place,
        shown=shown,
        option_label=argument("label"),
        option_column=argument("column"),
    )


def _holds_lists(table: Table, column: str) -> bool:
    """Whether one of the first cells is a list of several labels."""
    lists = (value_in(cells[0]) for _, cells in islice(table.read([column]), _ROWS) if not isinstance(cells, Fault))
    return any(isinstance(value, list) and len(value) > 1 for value in lists)


def _unfit(table: Table) -> Iterator[Message]:
    """Yields the columns that have the usual name of a role but no cell of it, with the fault of their first cell."""
    for column, cells in table.first.items():
        roles = [role for role in ROLES.values() if columns_of(role, (column,))]
        if (
            cells
            and roles
            and not any(columns_of(replace(role, required=False), (column,), table.first) for role in roles)
        ):
            try:
                roles[0].value(cells[0])
            except ValueError as error:
                yield Message("{column!r} {fault}", column=column, fault=reason(error))


def _spans_or_answers(table: Table, has: Callable[[str], str], labels: Sequence[str]) -> Detected | None:
    """Detects a kind of more than labels. labels: the columns that the user calls labels, which hold nothing else."""
    for holder, role in (("tokens", "tags"), ("tokens", "spans"), ("text", "spans")):
        column = has(role)
        if column and column not in labels and (text := has(holder)):
            return Detected("token-classification", {}, columns_summary({holder: [text], role: [column]}))
    firsts = {f"{name}{number}" for name in ROLES["choices"].series if name for number in ("1", "_1")}
    if column := has("choices") or next((name for name in table.columns if name.casefold() in firsts), ""):
        return Detected("multiple-choice", {}, columns_summary({"choices": [column]}))
    if (slots := has("slots")) and (text := has("text")):
        return Detected("slots", {}, columns_summary({"text": [text], "slots": [slots]}))
    question, context, answers = map(has, ("question", "context", "answers"))
    if question and context and answers and answers not in labels:
        why = columns_summary({"question": [question], "context": [context], "answers": [answers]})
        return Detected("question-answering", {}, why)
    return None


def _by_cells(table: Table, label: str, text: str, labels: Sequence[str], *, several: bool) -> Detected:
    """Regression if the first labels are numbers, many or with fractions, and not `several`; else classification."""
    records = list(islice(table.read([label]), _ROWS))
    cells = [cells[0] for _, cells in records if not isinstance(cells, Fault) and not is_empty(cells[0])]
    numbers = []
    for cell in cells:
        with suppress(ValueError):
            numbers.append(score(cell))
    count = len(set(numbers))
    is_whole = all(number.is_integer() for number in numbers)
    if not several and 0 < len(numbers) == len(cells) and (count > _MANY_NUMBERS or not is_whole):
        why = Message("score from {column!r}: {count} numbers", column=label, count=count)
        return Detected("regression", {"score": (label,)}, why)
    count = len({nfc(str(cell).strip(BLANK)) for cell in cells})
    why = columns_summary({"text": [text], "label": labels})
    if not several and len(records) < _ROWS:
        why = Message("{roles}: {count:,} labels", roles=why, count=count)
    return Detected("classification", {}, why, several)
