"""Reads the input of `korbert predict`: plain lines, JSON lines, CSV or TSV. A faulty record carries its error."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import PurePath
from typing import IO, Any, Literal

from korbert.errors import CorpusError, SettingsError
from korbert.streams.csv_records import MALFORMED, csv_records
from pipelines import lines
from pipelines.lines import Line

__all__ = ["FORMATS", "Format", "Keys", "Record", "option_of", "records"]

Format = Literal["auto", "lines", "jsonl", "csv", "tsv"]
FORMATS = ("auto", "lines", "jsonl", "csv", "tsv")
Keys = Mapping[str, tuple[str, ...]]
"""Field of a record -> its possible names in a file, in order of preference."""

_ENDINGS: Mapping[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_BATCH_ROWS = 1_000  # of a table


@dataclass(frozen=True)
class Record:
    """A record: the line where it begins, and its fields or its error.

    cut: the fields hold only the beginning of the line.
    """

    line: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    cut: bool = False
    error: str | None = None


def option_of(role: str) -> str:
    """The option that names the column of a role."""
    return f"--{role} NAME" if role in ("text", "pair") else f"--column {role}=NAME"


def records(file: IO[bytes], name: str, form: Format, keys: Keys) -> Iterator[list[Record]]:
    """Yields the records of a file in batches.

    form: "auto" goes by the extension of the name; if that is unknown, JSON lines if the first line begins with {.
    Raises SettingsError, listing the columns, if a table lacks one of `keys`; CorpusError if its header is faulty.
    """
    batches = lines.batches(file)
    first = next(batches, [])
    alone = set(keys) == {"text"}
    if form == "auto":
        looks: Format = "jsonl" if not alone or any(line.data[:1] == b"{" for line in first[:1]) else "lines"
        form = _ENDINGS.get(PurePath(name).suffix.lower(), looks)
    together = chain([first], batches)
    if form == "lines" and not (alone and "text" in keys["text"]):
        names = ", ".join(names[0] for names in keys.values())
        raise SettingsError(f"{name}: plain lines have no {names}: give a table or JSON lines, and name its --form")
    if form == "lines":
        return ([_of_text(line) for line in batch] for batch in together)
    if form == "jsonl":
        return ([_of_json(line, alone) for line in batch] for batch in together)
    return _table(chain.from_iterable(together), name, form, keys)


def _of_text(line: Line) -> Record:
    try:
        return Record(line.number, {"text": lines.decoded(line)}, line.cut)
    except CorpusError as error:
        return Record(line.number, error=str(error))


def _of_json(line: Line, alone: bool) -> Record:
    if line.cut:
        return Record(line.number, error=f"is longer than {lines.LONGEST:,} bytes")
    try:
        value = json.loads(lines.decoded(line))
    except CorpusError as error:
        return Record(line.number, error=str(error))
    except (ValueError, RecursionError) as error:
        way = "--form lines reads each line as a text" if alone else "a table needs --form csv or tsv"
        return Record(line.number, error=f"is not JSON ({error}): {way}")
    if not isinstance(value, dict):
        return Record(line.number, error=f"is {type(value).__name__} in JSON, not an object")
    return Record(line.number, value)


def _table(given: Iterator[Line], name: str, form: Format, keys: Keys) -> Iterator[list[Record]]:
    rows = _tsv(given) if form == "tsv" else _csv(given)
    head = next(rows, None)
    if head is None:
        return
    number, columns = head
    if isinstance(columns, str):
        raise CorpusError(f"{name}: line {number}, which names the columns: {columns}")
    missing = {role: names[0] for role, names in keys.items() if not set(names) & set(columns)}
    if missing:
        near = [alike for one in missing.values() for alike in difflib.get_close_matches(one, columns, 1)]
        hint = f"did you mean {' and '.join(near)}? " if near else ""
        header = ", or if the first line is not a header, use --form lines" if set(keys) == {"text"} else ""
        raise SettingsError(
            f"{name}: no column {' and '.join(missing.values())} among {', '.join(columns)}: {hint}"
            f"name it with {' and '.join(map(option_of, missing))}{header}"
        )
    while part := list(islice(rows, _BATCH_ROWS)):
        yield [_of_row(number, fields, columns) for number, fields in part]


def _of_row(number: int, fields: list[str] | str, columns: list[str]) -> Record:
    if isinstance(fields, str):
        return Record(number, error=fields)
    if len(fields) != len(columns):
        return Record(number, error=f"{len(fields)} fields where the first line has {len(columns)}")
    return Record(number, dict(zip(columns, fields, strict=True)))


def _tsv(given: Iterator[Line]) -> Iterator[tuple[int, list[str] | str]]:
    """Line number and fields, or error, of each row that is not blank. Quotes are ordinary characters."""
    for line in given:
        text = _decoded(line)
        if line.cut:
            yield line.number, _TOO_LONG
        elif text.strip():
            yield line.number, _checked(text.split("\t"))


def _csv(given: Iterator[Line]) -> Iterator[tuple[int, list[str] | str]]:
    """As _tsv. A quoted field may span lines; if its quote is never closed, only the first line is lost."""
    read = (None if line.cut else _decoded(line) + "\n" for line in given)
    for before, text, fields in csv_records(read, lines.LONGEST):
        if fields is None:
            yield before + 1, _TOO_LONG if text is None else MALFORMED
        elif "".join(fields).strip():
            yield before + 1, _checked(fields)


_TOO_LONG = f"is longer than {lines.LONGEST:,} bytes"


def _decoded(line: Line) -> str:
    return line.data.decode(errors="surrogateescape")


def _checked(fields: list[str]) -> list[str] | str:
    """The fields, or an error if they are not UTF-8."""
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return f"is not UTF-8: {' '.join(fields)[:40]!a}: convert the file, as with iconv -f cp949"
    return fields
