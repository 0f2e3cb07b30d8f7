"""Reads the input of `korbert predict`, `embed` and the like. A faulty record carries its error."""

import difflib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Self

from korbert.errors import SettingsError
from korbert.messages import Message, argument
from korbert.records import (
    LONGEST,
    UNDECODABLE,
    Columns,
    Fault,
    Format,
    Line,
    Lines,
    Source,
    Table,
    cell_of,
    fault_of,
    header_in,
    nested_columns,
    open_records,
)
from korbert.tasks.files import ROLES, Given, Role, cells, column_for, columns_of, row_of

_logger = logging.getLogger(__name__)

TEXT_NAMES = ROLES["text"].names
ID_NAMES = ("id", "_id")
MAX_CHARS = 100_000  # of a text; a classifier sees a few hundred pieces
_BATCH_ROWS = 1_000  # of a table


InputResult = dict[str, Any]
"""A record for people and programs: {"line", "id" if any}, and its values by role or its "error"."""


@dataclass(frozen=True)
class Record:
    """A record: its number in the file from 1, without a header, and its fields or its error.

    cut: the fields hold only the beginning of the line.
    """

    line: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    cut: bool = False
    error: str | None = None

    @classmethod
    def of(cls, line: int, value: object, roles: Sequence[Role], cut: bool = False) -> Self:
        """value: the fields of the record, or a fault. Tokens without a text, as in CoNLL, are joined to a text."""
        if isinstance(value, Fault) and value.record:  # only its labels are at fault
            value = value.record
        if not isinstance(value, dict):
            what = fault_of(value).what
            way = "--form lines reads each line as a text" if _is_text(roles) else "a table needs --form csv or tsv"
            hint = f": {way}" if what.startswith("is not JSON") else ""
            return cls(line, error=what + hint)
        if any("." in name for role in roles for name in role.names):
            value = {column: cell_of(value, column) for column in nested_columns(value)}
        tokens = value.get("tokens")
        names = next((role.names for role in roles if role.name == "text"), ())
        if isinstance(tokens, list) and "text" in names and column_for(names, tuple(value)) is None:
            try:
                words = cells.words(tokens) if tokens else []
            except ValueError as error:
                return cls(line, value, error=f"'tokens' {error}")
            value = {**value, "text": " ".join(words)}
        return cls(line, value, cut)

    def result(
        self, roles: Sequence[Role], series: Given | None = None, ids: tuple[str, ...] = (), longest: int = MAX_CHARS
    ) -> InputResult:
        """Returns the result of the record before prediction: line and id, and the values of the roles or an error.

        roles, series: as in row_of. ids: names of the field of the id, if it is none of ID_NAMES. A text of more than
        `longest` characters is cut, and marked with "cut".
        """
        result: InputResult = {"line": self.line}
        present = tuple(self.fields)
        id_column = column_for(ids, present) if ids else next(filter(self.fields.__contains__, ID_NAMES), None)
        id = self.fields.get(id_column or "")
        if isinstance(id, str | int) and not isinstance(id, bool):
            try:
                cells.text(id)  # what no file can hold is refused, as in texts
            except ValueError as error:
                return {**result, "error": f"{id_column!r} {error}"}
            result["id"] = id
        if self.error:
            return {**result, "error": self.error}
        for role, name in missing(roles, present).items():
            columns = ", ".join(map(repr, present[:6])) or "nothing"
            return {**result, "error": f"has no {name!r}, but {columns}: name it with {option_of(role)}"}
        try:
            result |= row_of(self.fields, roles, series)
        except ValueError as error:
            return {**result, "error": str(error)}
        if "text" in result and (self.cut or len(result["text"]) > longest):
            result["text"] = result["text"][:longest]
            result["cut"] = True
        return result


def cell_text(cell: object) -> str | None:
    """Returns a cell as text: strings and None as they are, other values as JSON."""
    return cell if cell is None or isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, default=str)


def option_of(role: str) -> str:
    """Returns the option that names the column of a role."""
    return f"--{role} NAME" if role in ("text", "pair", "query") else f"--column {role}=NAME"


def records(
    source: Source, name: str, form: Format, roles: Sequence[Role], *,
    every_column: bool = False, longest: int = LONGEST,
) -> Iterator[list[Record]]:  # fmt: skip
    """Yields the records of a source in batches; from a pipe of lines or JSON lines, those that have arrived.

    every_column: read all columns of a table, not only those of `roles` and the id. All else: as in `opened_for`.
    """
    with opened_for(roles, source, name, form, longest) as opened:
        if isinstance(opened, Lines):
            yield from (records_of_lines(opened, lines, roles) for lines in opened.batches)
            return
        rows = records_of_table(opened, name, roles, every_column=every_column)
        while batch := list(islice(rows, _BATCH_ROWS)):
            yield batch


@contextmanager
def opened_for(
    roles: Sequence[Role], source: Source, name: str, form: Format, longest: int = LONGEST
) -> Iterator[Lines | Table]:
    """Opens a source whose records have the roles.

    name: of the source, for its ending and for messages. form: "auto" goes by the ending, or else by content: text is
    read as plain lines unless the first line names the columns or begins with JSON. longest: most bytes of a line.
    Raises SettingsError, listing the columns, if a table or the first records of a file of JSON lines lack one of
    the roles; CorpusError for a faulty file.
    """
    # Only a text can be a plain line; a pair or a question needs names.
    is_text_only = _is_text(roles)

    def fits(columns: Columns) -> bool:
        return not missing([replace(role, names=role.names[:1]) for role in roles], columns)

    def guess(lines: Sequence[str]) -> Format:
        first = next(filter(str.strip, lines), "")
        header = header_in(lines)
        columns = tuple(column.strip() for column in header)
        usual = {column for role in ROLES.values() for column in columns_of(role, columns)}
        is_prose = columns != header and not usual.issuperset(columns)  # a space after a comma
        if len(columns) > 1 and not is_prose and not missing(roles, columns):
            return "tsv" if "\t" in first else "csv"
        return "lines" if is_text_only and not first.startswith("{") else "jsonl"

    with open_records(source, name, form, guess, fits, longest) as opened:
        if isinstance(opened, Table):
            for note in opened.notes:
                _logger.info(Message("{file}: {note}", file=name, note=note))
        elif opened.form == "lines" and (missing(roles, ("text",)) or not is_text_only):
            raise SettingsError(
                "{name}: plain lines have no {names}: give a table or JSON lines, and name its {option}",
                name=name,
                names=", ".join(role.names[0] for role in roles if role.required),
                option=argument("form"),
            )
        elif opened.form == "jsonl" and hasattr(source, "is_dir"):  # from a pipe, each record has its own error
            first = next(opened.batches, [])
            present = (record.fields for record in records_of_lines(opened, first, roles))
            if columns := dict.fromkeys(chain.from_iterable(present)):
                _check_columns(name, roles, tuple(columns))
            opened = replace(opened, batches=chain(filter(None, (first,)), opened.batches))
        yield opened


def records_of_lines(opened: Lines, lines: Sequence[Line], roles: Sequence[Role]) -> list[Record]:
    """Returns the records of these lines."""
    return [Record.of(line.number, opened.value(line), roles, line.cut) for line in lines]


def _is_text(roles: Sequence[Role]) -> bool:
    """Whether a text is all that a record has to have."""
    return {role.name for role in roles if role.required} == {"text"}


def records_of_table(
    table: Table, name: str, roles: Sequence[Role], *, every_column: bool = False, before: int = 0
) -> Iterator[Record]:
    """Yields the records of a table, which must have the roles. before: number of records of the file before it."""
    may_be_lines = _is_text(roles) and table.delimited is not None
    header = ""
    if may_be_lines:
        header = Message(", or if the first line is not a header, use {option} lines", option=argument("form"))
    _check_columns(table.place(name), roles, table.columns, header)
    chosen = {column_for(role.names, table.columns) or "text" for role in roles}
    named = [column_for((alias,), table.columns) for role in roles for alias in role.names]  # several may hold a list
    extra = [*ID_NAMES, *(["tokens"] if "text" not in table.columns else [])]
    all_columns = table.columns if every_column else ()  # in their order
    wanted = list(dict.fromkeys(filter(None, [*all_columns, *named, *(key for key in extra if key in table.columns)])))
    for column in wanted:
        if (count := table.columns.count(column)) > 1:
            _logger.warning(
                Message(
                    "{file}: {count} columns are called {column!r}, and only the first is read: give each its own name",
                    file=table.place(name), count=count, column=column,
                )
            )  # fmt: skip
    for number, (place, value) in enumerate(table.records(wanted), before + 1):
        if isinstance(value, Fault) and not table.objects:
            value = value._replace(what=f"{value.what} ({table.unit} {place} of the file)")
        record = Record.of(number, value, roles)
        texts = (cell for column, cell in record.fields.items() if column in chosen and isinstance(cell, str))
        if not table.objects and (bad := next(filter(UNDECODABLE.search, texts), None)):
            encoding = (table.encoding or "utf-8").upper()
            record = Record(number, error=f"is not {encoding}: {bad[:40]!a}: convert the file to UTF-8")
        yield record


class ColumnsMissing(SettingsError):
    """A file is without columns that the model reads. The message names them, and options of the command line."""


def missing(roles: Sequence[Role], columns: Columns) -> dict[str, str]:
    """Returns role -> its first name, for required roles without a column. Tokens can take the place of a text."""
    without = [role for role in roles if role.required and column_for(role.names, tuple(columns)) is None]
    return {role.name: role.names[0] for role in without if not ("text" in role.names and "tokens" in columns)}


def _check_columns(name: str, roles: Sequence[Role], columns: Columns, header: str = "") -> None:
    if lacking := missing(roles, columns):
        near = [column for wanted in lacking.values() for column in difflib.get_close_matches(wanted, columns, 1)]
        hint = Message("did you mean {names}? ", names=" and ".join(near)) if near else ""
        raise ColumnsMissing(
            "{name}: no column {values} among {columns}: {hint}name it with {lacking}{header}",
            name=name,
            values=" and ".join(lacking.values()),
            columns=", ".join(columns),
            hint=hint,
            lacking=" and ".join(map(option_of, lacking)),
            header=header,
        )
