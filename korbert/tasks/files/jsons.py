"""Reads JSON lines, and JSON files with a list of objects. Nested columns are named by path: labels.label."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

from korbert.errors import CorpusError
from korbert.tasks.files.table import Fault, Records, Table, TextFile, type_name

__all__ = ["cell_of", "holds_lines", "nested_columns", "read_json", "read_jsonl"]

_LOOKED_AT = 1_000  # records whose keys become the columns
_SPACE = re.compile(r"\s*")

_Found: TypeAlias = Iterator[tuple[int, Any]]  # number and value, or Fault


def read_jsonl(text: TextFile) -> Table:
    """One object per line. The columns are the keys of the first thousand."""
    return _table(text, "JSON lines", "line", lambda: _lines(text))


def read_json(text: TextFile) -> Table:
    """A list of objects, or an object with one such list (`{"data": [...]}`) among other values.

    In SQuAD format (KorQuAD, KLUE-MRC), a list of articles, each question is a record, with its context and title.
    Raises CorpusError for other JSON, and for invalid JSON, with the line.
    """
    whole = "".join(text.lines())
    begin = _past_space(whole, 0)
    if whole[begin : begin + 1] == "[":
        return _table(text, "JSON", "line", lambda: _items(whole, begin, text))
    items = _only_list(whole, text)
    if isinstance(items[0], dict) and "paragraphs" in items[0]:
        return _table(text, "JSON of SQuAD", "record", lambda: _questions(items))
    return _table(text, "JSON", "record", lambda: enumerate(items, 1))


def holds_lines(lines: Iterable[str]) -> bool:
    """Whether a file that begins with { is JSON lines: its first line is an object, and the next one begins another."""
    filled = (line for line in lines if line.strip())
    try:
        json.loads(next(filled, ""))
    except (ValueError, RecursionError):
        return False
    return next(filled, "").lstrip().startswith("{")


def cell_of(record: Mapping[str, Any], column: str) -> Any:
    """The value of a key or of a dotted path; None if there is none."""
    if column in record or "." not in column:
        return record.get(column)
    key, rest = column.split(".", 1)
    inner = record.get(key)
    return cell_of(inner, rest) if isinstance(inner, dict) else None


def nested_columns(record: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """The keys, with those of nested objects as dotted paths."""
    for key, value in record.items():
        yield f"{before}{key}"
        if isinstance(value, dict):
            yield from nested_columns(value, f"{before}{key}.")


def _table(text: TextFile, form: str, unit: str, found: Callable[[], _Found]) -> Table:
    first = [(number, _object_of(value)) for number, value in islice(found(), _LOOKED_AT)]
    objects = [value for _, value in first if isinstance(value, dict)]
    if not objects:
        what = f", {unit} {first[0][0]}: {_fault(first[0][1]).what}" if first else ": holds no row"
        raise CorpusError(f"{text.path}{what}: give a file with rows")
    columns = tuple(dict.fromkeys(chain.from_iterable(map(nested_columns, objects))))

    def read(wanted: Sequence[str]) -> Records:
        for number, value in found():
            if isinstance(value := _object_of(value), dict):
                yield number, [cell_of(value, column) for column in wanted]
            else:
                yield number, _fault(value)

    return Table(columns, form, text.encoding, unit, read)


def _object_of(value: Any) -> Any:
    """Of spaCy's pairs of a text and its labels, ["..", {"entities": [..]}], one object; other values unchanged."""
    is_pair = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)
    return {"text": value[0], **value[1]} if is_pair else value


def _fault(value: Any) -> Fault:
    return value if isinstance(value, Fault) else Fault("bad_json", f"{type_name(value)} where an object belongs")


def _lines(text: TextFile) -> _Found:
    for number, line in enumerate(text.lines(), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, Fault("bad_json", f"is not JSON ({error})")


def _items(whole: str, begin: int, text: TextFile) -> _Found:
    """Decodes the items of a list one by one, each with its line. begin: offset of the list."""
    decoder = json.JSONDecoder()
    line, counted, at = 1, 0, begin
    opening = "["
    while True:
        line += whole.count("\n", counted, at)
        counted = at
        if whole[at : at + 1] == "]" and not whole[at + 1 :].strip():
            return
        if whole[at : at + 1] != opening:
            raise CorpusError(
                f"{text.path}, line {line}: not JSON ({_shown(whole, at)} where a comma or ] belongs): mend it"
            )
        at = _past_space(whole, at + 1)
        if opening == "[" and whole[at : at + 1] == "]":
            opening = ","
            continue
        line += whole.count("\n", counted, at)
        counted = at
        try:
            value, end = decoder.raw_decode(whole, at)
        except (ValueError, RecursionError) as error:
            place = line + whole.count("\n", at, getattr(error, "pos", at))
            cause = getattr(error, "msg", error)
            raise CorpusError(f"{text.path}, line {place}: not JSON ({cause}): mend it") from error
        yield line, value
        at = _past_space(whole, end)
        opening = ","


def _only_list(whole: str, text: TextFile) -> list[Any]:
    try:
        value = json.loads(whole)
    except (ValueError, RecursionError) as error:
        line, cause = getattr(error, "lineno", 1), getattr(error, "msg", error)
        raise CorpusError(f"{text.path}, line {line}: not JSON ({cause}): mend it") from error
    held = {}
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, list) and any(isinstance(item, dict) for item in inner):
                held[key] = inner
    if len(held) != 1:
        what = f"lists of objects at {', '.join(held)}" if held else f"{type_name(value)} without a list of objects"
        raise CorpusError(f"{text.path}: {what}: give a list of objects, or an object with one such list")
    return next(iter(held.values()))


def _questions(articles: Sequence[Any]) -> _Found:
    """One record per question, with its context and title. An article without paragraphs is a fault."""
    number = 0
    for place, article in enumerate(articles):
        try:
            inside = [(paragraph["context"], list(paragraph["qas"])) for paragraph in article["paragraphs"]]
        except (KeyError, TypeError):
            number += 1
            yield number, Fault("bad_json", f"article {place} has no list of paragraphs, each with context and qas")
            continue
        for context, questions in inside:
            for question in questions:
                number += 1
                head = {"title": article.get("title"), "context": context}
                yield number, head | question if isinstance(question, dict) else question


def _shown(whole: str, at: int) -> str:
    return repr(whole[at : at + 20]) if at < len(whole) else "the end of the file"


def _past_space(whole: str, at: int) -> int:
    match = _SPACE.match(whole, at)
    return match.end() if match else at
