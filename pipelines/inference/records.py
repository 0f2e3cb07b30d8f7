"""Reads the input of `korbert predict`, `embed` and the like. A faulty record carries its error."""

import difflib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message
from korbert.records.delimited import header_in
from korbert.records.detection import is_json
from korbert.records.encodings import UNDECODABLE
from korbert.records.form import Format
from korbert.records.inputs import Lines, Source, open_records
from korbert.records.jsons import cell_of, fault_of, nested_columns, object_of, parsed
from korbert.records.lines import TOO_LONG, Line, text_of
from korbert.records.table import Columns, Fault, Table
from korbert.tasks.files import ROLES, column_for, columns_of

_logger = logging.getLogger(__name__)

Keys = Mapping[str, tuple[str, ...]]
"""Field of a record -> its possible names in a file, in order of preference."""

TEXT_NAMES = ROLES["text"].names
ID_NAMES = ("id", "_id")
_BATCH_ROWS = 1_000  # of a table


@dataclass(frozen=True)
class Record:
    """A record: its number in the file from 1, without a header, and its fields or its error.

    cut: the fields hold only the beginning of the line.
    """

    line: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    cut: bool = False
    error: str | None = None


def option_of(role: str) -> str:
    """The option that names the column of a role."""
    return f"--{role} NAME" if role in ("text", "pair", "query") else f"--column {role}=NAME"


def records(
    source: Source, name: str, form: Format, keys: Keys, *, every_column: bool = False
) -> Iterator[list[Record]]:
    """Yields the records of a source in batches; from a pipe of lines or JSON lines, those that have arrived.

    name: of the source, for messages and its ending. form: "auto" goes by the ending, or else by content, where text
    is plain lines unless the first one names the columns or begins with JSON.
    every_column: of a table, too, not only those of `keys` and the id.
    Raises SettingsError, listing the columns, if a table or the first records of a file of JSON lines lack one of
    `keys`; CorpusError for a faulty file.
    """
    alone = set(keys) == {"text"}

    def fits(columns: Columns) -> bool:
        return not _missing({role: names[:1] for role, names in keys.items()}, tuple(columns))

    def guess(lines: Sequence[str]) -> Format:
        if is_json(lines):
            return "json"
        first = next(filter(str.strip, lines), "")
        header = header_in(lines)
        columns = tuple(column.strip() for column in header)
        is_prose = columns != header and not all(map(_is_usual, columns))  # a space after a comma
        if len(columns) > 1 and not is_prose and not _missing(keys, columns):
            return "tsv" if "\t" in first else "csv"
        return "lines" if alone and not first.startswith("{") else "jsonl"

    with open_records(source, name, form, guess, fits) as opened:
        if isinstance(opened, Table):
            for note in opened.notes:
                _logger.info(Message("{file}: {note}", file=name, note=note))
            rows = _of_table(opened, name, keys, every_column)
            if opened.objects:
                rows = (_of_json(number, value, keys) for number, (_, value) in enumerate(opened.objects(), 1))
            while part := list(islice(rows, _BATCH_ROWS)):
                yield part
            return
        if opened.form == "lines" and not (alone and "text" in keys["text"]):
            names = ", ".join(names[0] for names in keys.values())
            raise SettingsError(f"{name}: plain lines have no {names}: give a table or JSON lines, and name its --form")
        parts: Iterator[list[Record]] = ([_of_line(line, opened, keys) for line in batch] for batch in opened.batches)
        if opened.form == "jsonl" and hasattr(source, "is_dir"):  # from a pipe, each record has its own error
            first = next(parts, [])
            if columns := dict.fromkeys(column for record in first for column in record.fields):
                _check_columns(name, keys, tuple(columns))
            parts = chain([first] if first else [], parts)
        yield from parts


def _is_usual(column: str) -> bool:
    """Whether a column has the usual name of a role."""
    return any(columns_of(role, (column,)) for role in ROLES.values())


def _of_line(line: Line, lines: Lines, keys: Keys) -> Record:
    if lines.form == "jsonl" and line.cut:
        return Record(line.number, error=TOO_LONG)
    try:
        text = text_of(line, lines.encoding)
    except CorpusError as error:
        return Record(line.number, error=str(error))
    if lines.form == "jsonl":
        return _of_json(line.number, object_of(parsed(text)), keys)
    return Record(line.number, {"text": text}, line.cut)


def _of_json(number: int, value: Any, keys: Keys) -> Record:
    if isinstance(value, Fault) and value.record:
        value = value.record
    if not isinstance(value, dict):
        what = fault_of(value).what
        way = "--form lines reads each line as a text" if set(keys) == {"text"} else "a table needs --form csv or tsv"
        hint = f": {way}" if what.startswith("is not JSON") else ""
        return Record(number, error=what + hint)
    if any("." in name for names in keys.values() for name in names):
        value = {column: cell_of(value, column) for column in nested_columns(value)}
    return Record(number, _with_text(value, keys))


def _missing(keys: Keys, columns: tuple[str, ...]) -> dict[str, str]:
    """Role -> its first name, of the roles without a column. Tokens stand for a text: see _with_text."""
    without = {role: names for role, names in keys.items() if column_for(names, columns) is None}
    return {role: names[0] for role, names in without.items() if not ("text" in names and "tokens" in columns)}


def _with_text(fields: dict[str, Any], keys: Keys) -> dict[str, Any]:
    """The fields of a record. Tokens without a text, as in CoNLL, are the words of one."""
    tokens, names = fields.get("tokens"), keys.get("text", ())
    if isinstance(tokens, list) and "text" in names and column_for(names, tuple(fields)) is None:
        return {**fields, "text": " ".join(map(str, tokens))}
    return fields


def _check_columns(name: str, keys: Keys, columns: tuple[str, ...], header: str = "") -> None:
    if missing := _missing(keys, columns):
        near = [alike for one in missing.values() for alike in difflib.get_close_matches(one, columns, 1)]
        hint = f"did you mean {' and '.join(near)}? " if near else ""
        raise SettingsError(
            f"{name}: no column {' and '.join(missing.values())} among {', '.join(columns)}: {hint}"
            f"name it with {' and '.join(map(option_of, missing))}{header}"
        )


def _of_table(table: Table, name: str, keys: Keys, every_column: bool) -> Iterator[Record]:
    may_be_lines = set(keys) == {"text"} and table.unit != "row"
    header = ", or if the first line is not a header, use --form lines" if may_be_lines else ""
    _check_columns(table.place(name), keys, table.columns, header)
    chosen = {column_for(names, table.columns) or "text" for names in keys.values()}
    named = [column_for((one,), table.columns) for names in keys.values() for one in names]  # several may hold a list
    more = table.columns if every_column else [*ID_NAMES, *(["tokens"] if "text" not in table.columns else [])]
    wanted = list(dict.fromkeys(filter(None, [*named, *(one for one in more if one in table.columns)])))
    for number, (place, cells) in enumerate(table.read(wanted), 1):
        if isinstance(cells, Fault):
            yield Record(number, error=f"{cells.what} ({table.unit} {place} of the file)")
            continue
        fields = _with_text(dict(zip(wanted, cells, strict=True)), keys)
        text = (cell for column, cell in fields.items() if column in chosen and isinstance(cell, str))
        if bad := next(filter(UNDECODABLE.search, text), None):
            yield Record(number, error=f"is not {table.encoding.upper()}: {bad[:40]!a}: convert the file to UTF-8")
        else:
            yield Record(number, fields)
