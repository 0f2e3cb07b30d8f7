"""Parses cells of labelled files. Each function takes a non-empty cell.

A cell is a string in CSV, TSV and CoNLL files, any JSON value elsewhere. For an invalid cell, the message of the
ValueError continues the name of the column: "is a list, not a text".
"""

import ast
import io
import json
import math
import re
import tokenize
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = [
    "Answer",
    "Span",
    "answers",
    "bio_tags",
    "choices",
    "is_empty",
    "label",
    "labels",
    "score",
    "slots",
    "spans",
    "tags",
    "text",
    "truth",
    "words",
]

_NAMES = {dict: "an object", list: "a list", float: "a number with a fraction", bool: "a truth value", int: "a number"}


class Span(NamedTuple):
    """A labelled part of a text: half-open, in characters."""

    start: int
    end: int
    label: str


class Answer(NamedTuple):
    """An answer, and its start in characters of the context, if the file has it."""

    text: str
    start: int | None


def is_empty(cell: Any) -> bool:
    """Whether a cell is None, NaN, or white space. `NA` and `null` are texts, an empty list is a list."""
    if isinstance(cell, str):
        return not cell or cell.isspace()
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def text(cell: Any) -> str:
    """The text, unchanged. A whole number becomes its digits, as in CSV."""
    if type(cell) is int:
        return str(cell)
    if not isinstance(cell, str):
        kind = "missing" if cell is None else _NAMES.get(type(cell), f"of type {type(cell).__name__}")
        raise ValueError(f"is {kind}, not a text")
    if "\0" in cell:
        raise ValueError(f"has a NUL byte at character {cell.index(chr(0))}")
    try:
        cell.encode()
    except UnicodeEncodeError as error:
        code = ord(cell[error.start])
        fault = f"byte 0x{code - 0xDC00:02x}, which its encoding lacks," if 0xDC80 <= code <= 0xDCFF else "a surrogate"
        raise ValueError(f"has {fault} at character {error.start}") from None
    return cell


def label(cell: Any) -> str:
    """A label, stripped. Numbers and truth values are spelled as in CSV: 1, 2.5, True."""
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)  # pandas turns 1 into 1.0 in a column with gaps
    return text(cell).strip()


def labels(cell: Any) -> list[str]:
    """Labels from a list, or a string: of a list, or of labels separated by | or else commas. May be empty."""
    given = _list_in(cell) if isinstance(cell, str) else cell
    if given is None and isinstance(cell, str):
        given = [part for part in cell.split("|" if "|" in cell else ",") if part.strip()]
    if not isinstance(given, list):
        given = [cell]
    return [label(part) for part in given]


def score(cell: Any) -> float:
    """A finite number."""
    try:
        number = float("nan") if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        number = float("nan")
    if not math.isfinite(number):
        raise ValueError(f"is {_shown(cell)}, not a finite number")
    return number


def truth(cell: Any) -> bool:
    """True or False, also as spelled in CSV: true, 1, False, 0."""
    found = {"true": True, "1": True, "false": False, "0": False}.get(str(cell).strip().lower())
    if found is None:
        raise ValueError(f"is {_shown(cell)}, neither true nor false")
    return found


def words(cell: Any) -> list[str]:
    """Words from a list of texts, or a string: of a list, or of words separated by white space."""
    given = _list_in(cell) if isinstance(cell, str) else cell
    if given is None and isinstance(cell, str):
        given = cell.split()
    if not isinstance(given, list) or not given:
        raise ValueError(f"is {_shown(cell)}, not a list of texts")
    return [_part(text, part, place) for place, part in enumerate(given)]


def tags(cell: Any) -> list[str]:
    """As `words`, in NFC."""
    return [unicodedata.normalize("NFC", tag) for tag in words(cell)]


_BIO = (
    r"(?P<place>[BI])-(?P<label>.+)",
    r"(?P<place>[BI])_(?P<label>.+)",
    r"(?P<label>.+)-(?P<place>[BI])",
    r"(?P<label>.+)_(?P<place>[BI])",
)


def bio_tags(values: Sequence[list[str] | None]) -> Sequence[list[str] | None]:
    """The tags of a file, where they are BIO in another spelling as O, B-LABEL and I-LABEL; others unchanged.

    Known are B_PER, PER-B and PER_B, if all tags are spelled alike, and - instead of O.
    """
    given = {tag for tags in values if tags for tag in tags}
    outside = "-" if "O" not in given else "O"
    for spelling in _BIO:
        found = {tag: re.fullmatch(spelling, tag) for tag in given - {outside}}
        begins = any(match and match["place"] == "B" for match in found.values())
        if all(found.values()) and (begins or spelling == _BIO[0]):
            known = {tag: f"{match['place']}-{match['label']}" for tag, match in found.items() if match} | {outside: "O"}
            return [tags and [known[tag] for tag in tags] for tags in values]
    return values


def choices(cell: Any) -> list[str]:
    """Two or more non-empty texts, from a list or a string of one. Trailing empty cells are ignored."""
    given = _list_in(cell) if isinstance(cell, str) else cell
    if not isinstance(given, list):
        raise ValueError(f"is {_shown(cell)}, not a list of choices")
    while given and is_empty(given[-1]):
        given = given[:-1]
    if len(given) < 2 or any(map(is_empty, given)):
        raise ValueError(f"has {_shown(given)}, not two choices or more without gaps")
    return [_part(text, part, place) for place, part in enumerate(given)]


def answers(cell: Any) -> list[Answer]:
    """Answers to a question: a text, a list of texts, or SQuAD's text and answer_start. An empty list is no answer."""
    given = _list_in(cell) if isinstance(cell, str) else _objects(cell)
    if given is None or type(given) is int:
        given = [cell]
    if not isinstance(given, list):
        raise ValueError(f"is {_shown(cell)}, not answers")
    return [_part(_answer, part, place) for place, part in enumerate(given)]


def _answer(part: Any) -> Answer:
    if not isinstance(part, dict):
        return Answer(text(part), None)
    start = part.get("answer_start", part.get("start"))
    if isinstance(start, bool) or not isinstance(start, int | None) or (start or 0) < 0:
        raise ValueError(f"has answer_start {_shown(start)}, not a character from 0")
    return Answer(text(part.get("text")), start)


def slots(cell: Any) -> dict[str, str | None]:
    """Slot description -> value, from an object or a string of one. An empty value is None."""
    given = cell
    if isinstance(cell, str):
        try:
            given = json.loads(cell)
        except (ValueError, RecursionError):
            given = None
    if not isinstance(given, dict) or any(map(is_empty, given)):
        raise ValueError(f"is {_shown(cell)}, not an object of descriptions and values")
    return {name: None if is_empty(value) else _part(label, value, name) for name, value in given.items()}


def spans(cell: Any) -> list[Span]:
    """Labelled parts of a text, in order: objects with start, end and label, or lists of these three."""
    given = _list_in(cell) if isinstance(cell, str) else _objects(cell)
    if not isinstance(given, list):
        raise ValueError(f"is {_shown(cell)}, not a list of spans")
    return sorted(_part(_span, part, place) for place, part in enumerate(given))


def _span(part: Any) -> Span:
    if isinstance(part, dict):
        part = [part.get("start"), part.get("end"), part.get("label", part.get("type"))]
    if not isinstance(part, list) or len(part) != 3 or is_empty(part[2]):
        raise ValueError(f"is {_shown(part)}, not start, end and label")
    start, end = part[:2]
    if type(start) is not int or type(end) is not int or not 0 <= start < end:
        raise ValueError(f"is {_shown(part)}, where start and end are no characters from 0 in order")
    return Span(start, end, label(part[2]))


def _part(value: Any, part: Any, place: int | str) -> Any:
    """value(part), with the place of the part in any ValueError."""
    try:
        return value(part)
    except ValueError as error:
        raise ValueError(f"has a part {place} that {error}") from None


def _list_in(cell: str) -> list[Any] | None:
    """Parses a list in a string, as JSON or as written by pandas; None if there is none."""
    if not cell.lstrip().startswith(("[", "{")):
        return None
    for read in (json.loads, _python):
        try:
            given = _objects(read(cell.strip()))
        except (ValueError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
            continue
        return given if isinstance(given, list) else None
    return None


def _python(cell: str) -> Any:
    """A Python literal, or numpy's spelling of one, without commas: Python would join adjacent strings."""
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(cell).readline)
        if token.type not in (tokenize.NL, tokenize.NEWLINE)
    ]
    values = (tokenize.STRING, tokenize.NUMBER)
    return ast.literal_eval(
        " ".join(
            token.string + "," * (token.type in values and following.type == token.type)
            for token, following in pairwise(tokens)
        )
    )


def _objects(given: Any) -> Any:
    """Converts an object of equally long lists (a list of objects in `datasets`) to a list of objects."""
    if not isinstance(given, dict) or not given or not all(isinstance(column, list) for column in given.values()):
        return [given] if isinstance(given, dict) else given
    if len({len(column) for column in given.values()}) > 1:
        raise ValueError(f"is {_shown(given)}, whose lists differ in length")
    return [dict(zip(given, values, strict=True)) for values in zip(*given.values(), strict=True)]


def _shown(cell: Any) -> str:
    shown = repr(cell)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
