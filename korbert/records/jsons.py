"""Reads JSON lines, and JSON files with a list of objects or with objects one after another.

Nested columns are named by path: labels.label.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NoReturn, TypeAlias

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.names import nfc
from korbert.records.compression import File
from korbert.records.encodings import UNDECODABLE
from korbert.records.table import Fault, Records, Table, TextFile, type_name
from korbert.system import JsonObject

_LOOKED_AT = 1_000  # records whose keys become the columns
_SPACE = re.compile(r"[ \t\r\n]*")
_LONGEST_TOKEN = 32  # characters of a token other than a string, of which the end of a block may hold a part
_LONGEST_VALUE = 1 << 28  # characters: an object with a list, such as a whole KorQuAD file, is one value
_DECODER = json.JSONDecoder()

Numbered: TypeAlias = Iterator[tuple[int, Any]]
"""Number of each record, and its value or Fault."""


def read_jsonl(text: TextFile) -> Table:
    """One object per line. The columns are the keys of the first thousand."""

    def values() -> Numbered:
        for number, line in enumerate(text.lines(), 1):
            if line.strip():
                yield number, parse_line(line)

    return _table(text, Message("JSON lines"), "line", values)


def read_json(text: TextFile) -> Table:
    """A list of objects, an object with one such list (`{"data": [...]}`), or objects one after another.

    A single object is a record, whatever lists it has, if it has a `text` and no list `data`.
    In SQuAD format (KorQuAD, KLUE-MRC), a list of articles, each question is a record, with its context and title.
    Raises CorpusError for other JSON, and for invalid JSON, with the line. Only an object with a list is held in
    memory.
    """
    values = _Values(text)
    if values.next() == "[":
        return _table(text, "JSON", "line", lambda: _Values(text).items())
    value = values.value()
    fields = value if isinstance(value, dict) else {}
    is_record = isinstance(fields.get("text"), str) and not isinstance(fields.get("data"), list)
    if is_record or (isinstance(value, dict) and values.next()):
        return _table(text, "JSON", "line", lambda: _Values(text).successive())
    lists = {
        key: inner
        for key, inner in fields.items()
        if isinstance(inner, list) and any(isinstance(item, dict) for item in inner)
    }
    if len(lists) != 1:
        what = Message("{kind} without a list of objects", kind=type_name(value))
        if lists:
            what = Message("lists of objects at {keys}", keys=", ".join(lists))
        raise CorpusError(
            "{text}: {what}: give a list of objects, or an object with one such list", text=text.path, what=what
        )
    (items,) = lists.values()
    if isinstance(items[0], dict) and "paragraphs" in items[0]:
        return _table(text, Message("JSON of SQuAD"), "record", lambda: enumerate(_questions(items), 1))
    return _table(text, "JSON", "record", lambda: enumerate(items, 1))


def read_value(text: TextFile) -> Any:
    """The one value of a file. Raises CorpusError for invalid JSON and undecodable bytes, with the line."""
    content = "".join(text.blocks())
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _not_json(text.path, getattr(error, "lineno", 1), getattr(error, "msg", str(error))) from None
    if bad := UNDECODABLE.search(content):
        raise CorpusError(
            "{text}: character {start} is not {upper}: mend it",
            text=text.path,
            start=bad.start(),
            upper=text.encoding.upper(),
        )
    return value


def holds_lines(lines: Iterable[str]) -> bool:
    """Whether a file that begins with { is JSON lines: its first line is an object, and the next one begins another."""
    filled = (line for line in lines if line.strip())
    return not isinstance(parse_line(next(filled, "")), Fault) and next(filled, "").lstrip().startswith("{")


def parse_line(line: str) -> Any:
    """The value of a line, or a Fault."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError of another kind
        return Fault("bad_json", Message("is not JSON ({error})", error=error), raw=line)


def value_in(cell: Any) -> Any:
    """The list or object in a string, as JSON or as pandas writes it; None for another string. Other cells stay."""
    if not isinstance(cell, str):
        return cell
    for read in (json.loads, _python) if cell.lstrip().startswith(("[", "{")) else ():
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if isinstance(value := read(cell.strip()), list | dict):
                return value
    return None


_ITEM = r"'[^']*'|\"[^\"]*\"|[-+.\w]+"
_OF_NUMPY = re.compile(rf"\[\s*(?:{_ITEM})(?:\s+(?:{_ITEM}))*\s*\]")


def _python(cell: str) -> object:
    """A Python literal, or a list as numpy spells it, without commas: Python would join adjacent strings."""
    if _OF_NUMPY.fullmatch(cell):
        return list(map(ast.literal_eval, re.findall(_ITEM, cell)))
    return ast.literal_eval(cell)


def fault_of(value: object) -> Fault:
    """The fault of a value that is not an object."""
    if isinstance(value, Fault):
        return value
    raw = json.dumps(value, ensure_ascii=False)
    return Fault("bad_json", Message("{kind} where an object belongs", kind=type_name(value)), raw=raw)


def cell_of(record: JsonObject, column: str) -> Any:
    """The value of a key, in any Unicode form, or of a dotted path of them; None if there is none.

    A key may itself have dots, as `nested_columns` lists it.
    """
    if column in record:
        return record[column]
    key, dot, rest = column.partition(".")
    if dot and isinstance(inner := record.get(key), dict) and rest in inner:  # the usual path
        return inner[rest]
    if not dot and column.isascii():
        return None
    column = nfc(column)
    for name, value in record.items():
        key = nfc(name)
        if key == column:
            return value
        if isinstance(value, dict) and column.startswith(f"{key}."):
            inner = cell_of(value, column[len(key) + 1 :])
            if inner is not None:
                return inner
    return None


def nested_columns(record: JsonObject, before: str = "") -> Iterator[str]:
    """The keys, with those of nested objects as dotted paths."""
    for key, value in record.items():
        yield f"{before}{key}"
        if isinstance(value, dict):
            yield from nested_columns(value, f"{before}{key}.")


def _table(text: TextFile, form: str, unit: str, values: Callable[[], Numbered]) -> Table:
    def objects_of() -> Numbered:
        return ((number, object_of(value)) for number, value in values())

    first = list(islice(objects_of(), _LOOKED_AT))
    objects = [value for _, value in first if isinstance(value, dict)]
    if not objects:
        what = f", {unit} {first[0][0]}: {fault_of(first[0][1]).what}" if first else ": holds no row"
        raise CorpusError("{text}{what}: give a file with rows", text=text.path, what=what)
    return table_of(objects, objects_of, form, text.encoding, unit)


def table_of(
    first: Iterable[JsonObject],
    objects: Callable[[], Numbered],
    form: str,
    encoding: str,
    unit: str,
    cell: Callable[[JsonObject, str], object] = cell_of,
) -> Table:
    """A table of objects. first: some of them, whose keys are the columns."""

    def read(wanted: Sequence[str]) -> Records:
        for number, value in objects():
            yield number, [cell(value, column) for column in wanted] if isinstance(value, dict) else fault_of(value)

    columns = tuple(dict.fromkeys(chain.from_iterable(map(nested_columns, first))))
    return Table(columns, form, encoding, unit, read, objects)


def object_of(value: object) -> object:
    """Merges spaCy's pair of a text and its labels, ["..", {"entities": [..]}]; returns other values unchanged."""
    match value:
        case [str(text), dict(labels)]:
            return {"text": text, **labels}
    return value


class _Values:
    """The JSON values of a text, one by one, of which it holds one at a time.

    data: the part of the text that is held. at: the position in `data`. line: the number of the line at that position.
    """

    def __init__(self, text: TextFile) -> None:
        self._path = text.path
        self._blocks = text.blocks()
        self.data = ""
        self.at = 0
        self.line = 1

    def next(self) -> str:
        """Skips white space and returns the character after it, without taking it; "" at the end."""
        while True:
            if match := _SPACE.match(self.data, self.at):
                self.go(match.end())
            if self.at < len(self.data):
                return self.data[self.at]
            if not self._more():
                return ""

    def go(self, to: int) -> None:
        self.line += self.data.count("\n", self.at, to)
        self.at = to

    def value(self) -> object:
        """The value that begins here. CorpusError if it is invalid, cut off or too long."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.data, self.at)
            except (ValueError, RecursionError) as error:
                position = getattr(error, "pos", self.at)
                cause = getattr(error, "msg", str(error))
                is_cut = cause.startswith("Unterminated") or position > len(self.data) - _LONGEST_TOKEN
                if not (is_cut and self._more()):
                    self.refuse(position, cause)
            else:
                if end < len(self.data) or not self._more():  # a number may go on
                    self.go(end)
                    return value

    def items(self) -> Numbered:
        """The items of the list that begins here, each with its line."""
        mark = self.next()
        while mark != "]":
            self.go(self.at + 1)
            if mark == "[" and self.next() == "]":
                break
            self.next()
            yield self.line, self.value()
            if (mark := self.next()) not in (",", "]"):
                self.refuse(self.at, Message("{shown} where a comma or ] belongs", shown=self.shown()))
        self.go(self.at + 1)
        if self.next():
            self.refuse(self.at, Message("{shown} after the list", shown=self.shown()))

    def successive(self) -> Numbered:
        """Values one after another, each with its line."""
        while self.next():
            yield self.line, self.value()

    def refuse(self, at: int, cause: str) -> NoReturn:
        raise _not_json(self._path, self.line + self.data.count("\n", self.at, at), cause)

    def shown(self) -> str:
        return repr(self.data[self.at : self.at + 20]) if self.at < len(self.data) else Message("the end of the file")

    def _more(self) -> bool:
        """Reads at least as much as is held, so that a value of many blocks is parsed a few times. False at the end."""
        rest = self.data[self.at :]
        if len(rest) > _LONGEST_VALUE:
            raise CorpusError(
                "{path}, line {line}: a value is longer than {longest_value:,} characters",
                path=self._path,
                line=self.line,
                longest_value=_LONGEST_VALUE,
            )
        parts = [rest]
        size = 0
        while size <= len(rest) and (block := next(self._blocks, "")):
            parts.append(block)
            size += len(block)
        self.data = "".join(parts)
        self.at = 0
        return size > 0


def _not_json(path: File, line: int, cause: str) -> CorpusError:
    return CorpusError("{path}, line {line}: not JSON ({cause}): mend it", path=path, line=line, cause=cause)


def paragraphs_of(article: JsonObject) -> list[tuple[object, Any]]:
    """Context and questions of each paragraph of an article of SQuAD; questions are None where there are none.

    KeyError or TypeError for anything else.
    """
    return [(paragraph["context"], paragraph.get("qas")) for paragraph in article["paragraphs"]]


def _questions(articles: Sequence[JsonObject]) -> Iterator[object]:
    """One record per question, with its context and title. An article without paragraphs is a fault."""
    for index, article in enumerate(articles):
        try:
            paragraphs = [(context, list(questions)) for context, questions in paragraphs_of(article)]
        except (KeyError, TypeError):
            what = Message("article {index} has no list of paragraphs, each with context and qas", index=index)
            yield Fault("bad_json", what)
            continue
        for context, questions in paragraphs:
            head = {"title": article.get("title"), "context": context}
            yield from (head | question if isinstance(question, dict) else question for question in questions)
