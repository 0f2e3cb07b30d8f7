"""Parses cells of labelled files. Each function takes a non-empty cell.

A cell is a string in CSV, TSV and CoNLL files, any JSON value elsewhere. For an invalid cell, the message of the
ValueError continues the name of the column: "is a list, not a text".
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from korbert.messages import Message, argument, reason
from korbert.names import BLANK, nfc
from korbert.records import is_empty, value_in

_T = TypeVar("_T")
_DATE = re.compile(r"(\d{4})[-./](\d{1,2})[-./](\d{1,2})(.*)")
_MONTH = re.compile(r"(19|20)\d\d\.(0?[1-9]|1[0-2])")
_NAMES = {
    dict: Message("an object"),
    list: Message("a list"),
    float: Message("a number with a fraction"),
    bool: Message("a truth value"),
    int: Message("a number"),
    type(None): Message("missing"),
}


class Unclear(ValueError):
    """A cell that shows that the file means something else than was assumed, so that the whole file is refused."""


class LabelledSpan(NamedTuple):
    """A labelled part of a text: half-open, in characters."""

    start: int
    end: int
    label: str


class QuotedSpan(NamedTuple):
    """A span as a tool counts it, with the text that it marks; `place_spans` finds the characters."""

    start: int
    end: int
    label: str
    text: str


class GoldAnswer(NamedTuple):
    """An answer, and its start in characters of the context, if the file has it."""

    text: str
    start: int | None

    @property
    def span(self) -> tuple[int, int]:
        """The characters of an answer with a start, half-open."""
        assert self.start is not None
        return self.start, self.start + len(self.text)


def text(cell: object) -> str:
    """The text, unchanged. A whole number becomes its digits, as in CSV."""
    if type(cell) is int:
        return str(cell)
    if not isinstance(cell, str):
        kind = _NAMES.get(type(cell)) or Message("of type {name}", name=type(cell).__name__)
        raise ValueError(Message("is {kind}, not a text", kind=kind))
    if "\0" in cell:
        raise ValueError(Message("has a NUL byte at character {place}", place=cell.index("\0")))
    try:
        cell.encode()
    except UnicodeEncodeError as error:
        code = ord(cell[error.start])
        fault = Message("a surrogate")
        if 0xDC80 <= code <= 0xDCFF:  # Python's placeholder for a byte that cannot be decoded
            fault = Message("byte 0x{byte:02x}, which its encoding lacks,", byte=code - 0xDC00)
        raise ValueError(Message("has {fault} at character {place}", fault=fault, place=error.start)) from None
    return cell


def text_or_empty(cell: object) -> str:
    """As `text`, but an empty cell is no fault: a string stays as it is, another one becomes ""."""
    if is_empty(cell):
        return cell if isinstance(cell, str) else ""
    return text(cell)


def label(cell: object) -> str:
    """A label as in `name`. Numbers and truth values are spelled as in CSV: 1, 2.5, True.

    A list of one label, as doccano writes it, is that label; white space is left out.
    """
    value = value_in(cell)
    if value is None or value == {} or not isinstance(value, list | dict):
        return name(cell)
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, list) for part in parts):
        raise ValueError(Message("is a list of lists, not a label"))
    names = [label(choice) for part in parts for choice in _chosen(part) if not _is_blank(choice)]
    if not names:
        raise ValueError(Message("is a list without a label"))
    if len(names) > 1:
        raise Unclear(
            Message(
                "is a list of {count} labels: use {option}, for any number of labels",
                count=len(names), option=argument("several"),
            )
        )  # fmt: skip
    return names[0]


def name(cell: object) -> str:
    """A text, number or truth value as in CSV, in NFC, without white space and zero-width characters around it."""
    if isinstance(cell, float) and not math.isnan(cell):
        return str(int(cell)) if cell.is_integer() else repr(cell)  # pandas turns 1 into 1.0 in a column with gaps
    return str(cell) if isinstance(cell, bool) else nfc(text(cell).strip(BLANK))


def moment(cell: object) -> float:
    """A finite number; or a date, as seconds since 1970: 2026-11-29, 2026.11.29, 2026-11-29T10:20.

    2026.10 is refused: as a number it is 2026.1, and as a month it comes after 2026.9.
    """
    spelling = cell.isoformat() if isinstance(cell, date) else name(cell)
    if _MONTH.fullmatch(spelling):
        raise ValueError(Message("is {cell!r}, a number or a month: write a date such as 2026-10-01", cell=spelling))
    with suppress(ValueError):
        return score(spelling)
    if parts := _DATE.fullmatch(spelling):
        with suppress(ValueError):
            year, month, day, rest = parts.groups()
            date_time = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}{rest}")
            return date_time.replace(tzinfo=date_time.tzinfo or UTC).timestamp()
    raise ValueError(Message("is {cell!r}, neither a number nor a date such as 2026-11-29", cell=spelling))


def labels(cell: object) -> list[str]:
    """Labels from a list, or a string: of a list, or of labels as in `joined_labels`. May be empty.

    An object names each label with 0 or 1, or holds a list of `choices` (Label Studio). White space is left out.
    """
    value = value_in(cell)
    if value is None and isinstance(cell, str):
        value = joined_labels(cell)
    parts = value if isinstance(value, list) else [value]
    return [label(choice) for part in parts for choice in _chosen(part) if not _is_blank(choice)]


def joined_labels(cell: str) -> list[str]:
    """The labels in a cell, separated by |, else by semicolons (Microsoft Forms ends with one), else by commas."""
    mark = next((mark for mark in "|;" if mark in cell), ",")
    return [part.strip(BLANK) for part in cell.split(mark) if not is_empty(part)]


def _is_blank(cell: object) -> bool:
    """Whether a cell is a string of white space; None and NaN are no strings."""
    return isinstance(cell, str) and is_empty(cell)


def _chosen(part: object) -> Sequence[object]:
    """The labels of a part of a list: of the object {"choices": [..]} or {"기쁨": 1, "슬픔": 0}, or itself."""
    if not isinstance(part, dict):
        return [part]
    if isinstance(choices := part.get("choices"), list):
        return choices
    return flagged_names(part, list(part.values()))


_FLAGS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


def flag(cell: object) -> bool | None:
    """The truth value of 0, 1, True or False, also as spelled in CSV; None for another cell."""
    return _FLAGS.get(str(cell).strip().lower())


def flagged_names(names: Iterable[str], flags: Sequence[object]) -> list[str]:
    """The names whose flags are set; an empty cell is not set."""
    for cell in flags:
        if flag(cell) is None and not is_empty(cell):
            raise ValueError(Message("has {cell} where 0 or 1 says whether the label holds", cell=_display(cell)))
    return [name(label) for label, cell in zip(names, flags, strict=True) if flag(cell)]


def labels_of_lists(values: Sequence[list[str] | None]) -> Sequence[list[str] | None]:
    """Returns the labels of all rows of a file; lists of 0 and 1 give labels by position: [0, 1, 0] is "1".

    Lists are read in this way if all lists of the file hold 0 and 1 alone and have the same length, two or more. Raises
    ValueError for other lists that repeat a label, and where all lists are [0, 1], which may also be two labels.
    """
    lists = [value for value in values if value]
    # [0, 1] may be flags of two labels, or two labels called 0 and 1: other rows tell, or nothing does.
    width = len(lists[0]) if lists else 0
    if width > 1 and all(len(value) == width and None not in map(flag, value) for value in lists):
        if width == 2 and all(value == lists[0] and value[0] != value[1] for value in lists):
            raise ValueError(
                Message("the labels of all rows are {labels}: write the names of the labels", labels=repr(lists[0]))
            )
        return [value and flagged_names(map(str, range(width)), value) for value in values]
    for value in lists:
        if len(set(value)) < len(value):
            raise ValueError(
                Message(
                    "the labels {labels} repeat one: write each label once, or 0 and 1 for all labels in every row",
                    labels=_display(value),
                )
            )
    return values


def score(cell: Any) -> float:
    """A finite number."""
    with suppress(TypeError, ValueError, OverflowError):  # of an int of hundreds of digits
        if not isinstance(cell, bool) and math.isfinite(number := float(cell)):
            return number
    raise ValueError(Message("is {cell}, not a finite number", cell=_display(cell)))


def truth(cell: object) -> bool:
    """True or False, also as spelled in CSV: true, 1, False, 0."""
    if (value := flag(cell)) is None:
        raise ValueError(Message("is {cell}, neither true nor false", cell=_display(cell)))
    return value


def words(cell: object) -> list[str]:
    """Words from a list of texts, or a string: of a list, or of words separated by white space."""
    value = value_in(cell)
    if value is None and isinstance(cell, str):
        value = cell.split()
    if not isinstance(value, list) or not value:
        raise ValueError(Message("is {cell}, not a list of texts", cell=_display(cell)))
    return [_part(text, part, index) for index, part in enumerate(value)]


def tags(cell: object) -> list[str]:
    """As `words`, each as in `name`."""
    return list(map(name, words(cell)))


_BIO = (
    r"(?P<place>[BI])-(?P<label>.+)",
    r"(?P<place>[BI])_(?P<label>.+)",
    r"(?P<label>.+)-(?P<place>[BI])",
    r"(?P<label>.+)_(?P<place>[BI])",
)


def bio_tags(values: Sequence[list[str] | None]) -> Sequence[list[str] | None]:
    """Converts the BIO tags of a file from other spellings to O, B-LABEL and I-LABEL; other tags stay unchanged.

    The other spellings are B_PER, PER-B and PER_B, if all tags are spelled alike, - instead of O, and a bare I (KMOU),
    which continues the entity before it.
    """
    # Each spelling is tried on all tags: a label may itself hold a hyphen or an underscore.
    distinct_tags = {tag for tags in values if tags for tag in tags} - {"I"}
    outside = "-" if "O" not in distinct_tags else "O"
    for spelling in _BIO:
        matches = [re.fullmatch(spelling, tag) for tag in distinct_tags - {outside}]
        begins = any(match and match["place"] == "B" for match in matches)
        if all(matches) and (begins or spelling == _BIO[0]):
            bio_tag_of = {match[0]: f"{match['place']}-{match['label']}" for match in matches if match} | {outside: "O"}
            return [tags and _continue_labels([bio_tag_of.get(tag, tag) for tag in tags]) for tags in values]
    return values


def _continue_labels(tags: Sequence[str]) -> list[str]:
    """Gives each bare I the label of the tag before it, if that is the tag of an entity."""
    completed: list[str] = []
    for tag in tags:
        label = completed[-1][2:] if tag == "I" and completed else ""
        completed.append(f"I-{label}" if label else tag)
    return completed


_FEW = 4  # rows: so few sentences may all have a single word


def sentences(values: Sequence[list[str] | None]) -> Sequence[list[str] | None]:
    """The tokens of a file, unchanged. Raises ValueError if each of many rows has only one: these are not sentences."""
    if len(values) > _FEW and all(value is not None and len(value) == 1 and len(value[0]) > 1 for value in values):
        raise ValueError(
            Message(
                "each row has one word instead of a sentence: write CoNLL (.conll), with a word, a tab and its tag on "
                "each line, and a blank line between sentences"
            )
        )
    return values


def choices(cell: object) -> list[str]:
    """Two or more non-empty texts, from a list or a string of one. Trailing empty cells are ignored."""
    value = value_in(cell)
    if not isinstance(value, list | tuple):
        raise ValueError(Message("is {cell}, not a list of choices", cell=_display(cell)))
    while value and is_empty(value[-1]):
        value = value[:-1]
    if len(value) < 2 or any(map(is_empty, value)):
        raise ValueError(Message("has {cell}, not two choices or more without gaps", cell=_display(value)))
    return [_part(text, part, index) for index, part in enumerate(value)]


def texts(cell: object) -> list[str]:
    """A text, or several, from a list or a string of one. Empty cells are left out."""
    value = value_in(cell)
    parts = value if isinstance(value, list) else [cell]
    return [_part(text, part, index) for index, part in enumerate(parts) if not is_empty(part)]


def vector(cell: object) -> NDArray[np.float32]:
    """A list of finite numbers."""
    with suppress(TypeError, ValueError, OverflowError), np.errstate(over="ignore"):
        numbers = np.asarray(value_in(cell), np.float32)
        if numbers.ndim == 1 and len(numbers) and np.isfinite(numbers).all():
            return numbers
    raise ValueError(Message("is {cell}, not a list of finite numbers", cell=_display(cell)))


def answers(cell: object) -> list[GoldAnswer]:
    """Answers to a question: a text, a list of texts, or SQuAD's text and answer_start. Empty ones are left out."""
    value = _objects(value_in(cell))
    if value is None or type(value) is int:
        value = [cell]
    if not isinstance(value, list):
        raise ValueError(Message("is {cell}, not answers", cell=_display(cell)))
    texts = [part.get("text", 0) if isinstance(part, dict) else part for part in value]
    return [_part(_answer, part, index) for index, part in enumerate(value) if not is_empty(texts[index])]


def _answer(part: object) -> GoldAnswer:
    if not isinstance(part, dict):
        return GoldAnswer(text(part), None)
    offset = part.get("answer_start", part.get("start"))
    start = _offset(offset)
    if offset is not None and (start is None or start < 0):
        raise ValueError(Message("has answer_start {cell}, not a character from 0", cell=_display(offset)))
    return GoldAnswer(text(part.get("text", part.get("value"))), start)


ANY = "any"  # the value of a slot that may have any value


def slot(part: object) -> GoldAnswer | str | None:
    """The value of a slot: a GoldAnswer, ANY, or None for an absent slot."""
    if is_empty(part):
        return None
    return ANY if part == ANY else _answer(part)


def parse_named(value: Callable[[object], _T], cell: object) -> dict[str, _T]:
    """Name -> value(part), from an object, or a string of one."""
    parts = value_in(cell)
    if not isinstance(parts, dict) or any(map(is_empty, parts)):
        raise ValueError(Message("is {cell}, not an object of names and values", cell=_display(cell)))
    return {name: _part(value, part, name) for name, part in parts.items()}


def _offset(cell: object) -> int | None:
    """A whole number, also as 7.0, "7" or "7.0"; None for another cell."""
    with suppress(ValueError):
        if (number := score(cell)).is_integer():
            return int(number)
    return None


def starts(cell: object) -> list[int]:
    """The first characters of the answers: a number, also as text, or a list of them; -1 where there is none."""
    value = value_in(cell)
    parts = value if isinstance(value, list) else [cell]
    numbers = [number for number in map(_offset, parts) if number is not None and number >= -1]
    if len(numbers) < len(parts):
        raise ValueError(Message("is {cell}, not a character from 0", cell=_display(cell)))
    return numbers


def spans(cell: object) -> list[LabelledSpan | QuotedSpan]:
    """Labelled parts of a text, in order: objects with start, end and label, or lists of these three.

    Keys are start, end, label, or start_offset, end_offset, labels (a list of one), type. An object with `text` becomes
    a QuotedSpan.
    """
    value = _objects(value_in(cell))
    if not isinstance(value, list):
        raise ValueError(Message("is {cell}, not a list of spans", cell=_display(cell)))
    return sorted(_part(_span, part, index) for index, part in enumerate(value))


def _span(part: object) -> LabelledSpan | QuotedSpan:
    quoted = None
    if isinstance(part, dict):
        quoted = part.get("text")
        names = part.get("label", part.get("labels", part.get("type")))
        part = [part.get("start", part.get("start_offset")), part.get("end", part.get("end_offset")), names]
    if not isinstance(part, list | tuple) or len(part) != 3 or is_empty(part[2]):
        raise ValueError(Message("is {cell}, not start, end and label", cell=_display(part)))
    start, end = map(_offset, part[:2])
    is_quoted = isinstance(quoted, str) and quoted != ""
    if start is None or end is None or not 0 <= start < end + is_quoted:  # its end may be the last character
        raise ValueError(
            Message("is {cell}, where start and end are not characters from 0 in order", cell=_display(part))
        )
    if isinstance(quoted, str):
        return QuotedSpan(start, end, label(part[2]), quoted)
    return LabelledSpan(start, end, label(part[2]))


def place_spans(text: str, spans: Sequence[LabelledSpan | QuotedSpan]) -> list[LabelledSpan]:
    """Converts spans to characters of the text. A span with a quoted text has to mark that text, compared in NFC.

    If it does not, its offsets are read as UTF-16 units, as in a browser, or its end as the last character, inclusive;
    ValueError if neither fits.
    """
    result = []
    for span in spans:
        if isinstance(span, LabelledSpan):
            result.append(span)
            continue
        start, end, name, quoted = span
        from_utf16 = (_from_utf16(text, start), _from_utf16(text, end))
        candidates = ((start, end), from_utf16, (start, end + 1))
        matches = [pair for pair in candidates if _plain(text[slice(*pair)]) == _plain(quoted)]
        if not matches:
            raise ValueError(
                Message(
                    "has {label} at [{start}, {end}), where the text has {there}, not {quoted}",
                    label=name, start=start, end=end, there=_display(text[start:end]), quoted=_display(quoted),
                )
            )  # fmt: skip
        result.append(LabelledSpan(*matches[0], name))
    return result


def _from_utf16(text: str, units: int) -> int:
    """Returns how many characters the first `units` UTF-16 units of the text are."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))


def _plain(text: str) -> str:
    """The text in NFC, with spaces for all white space: some tools write a line end as a space."""
    return re.sub(r"\s", " ", nfc(text))


def _part(value: Callable[[object], _T], part: object, name: int | str) -> _T:
    """value(part), with the name of the part in any ValueError."""
    try:
        return value(part)
    except ValueError as error:
        raise ValueError(Message("has a part {name} that {fault}", name=name, fault=reason(error))) from None


def _objects(value: Any) -> Any:
    """Converts an object of equally long lists (a list of objects in `datasets`) to a list of objects."""
    if not isinstance(value, dict) or not value or not all(isinstance(column, list) for column in value.values()):
        return [value] if isinstance(value, dict) else value
    if len({len(column) for column in value.values()}) > 1:
        raise ValueError(Message("is {cell}, whose lists differ in length", cell=_display(value)))
    return [dict(zip(value, values, strict=True)) for values in zip(*value.values(), strict=True)]


def _display(cell: object) -> str:
    shown = repr(cell)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
