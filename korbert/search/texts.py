"""The texts of an index in its database: with their fields, terms, passages and vectors, all of them or none."""

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sqlite3 import Connection
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message
from korbert.records import list_rows
from korbert.search.database import Damage, add_to_meta, checked_row, checksum, read_meta
from korbert.search.words import add_postings, remove_postings
from korbert.tasks.files import ROLES, column_for

Fields = Mapping[str, Any]  # what else is known about a text: any JSON

_TAKEN = Message(
    "give strings, (id, text) or (id, text, fields), dicts with a text, a frame of pandas or polars, or a Dataset"
)


class StoredText(NamedTuple):
    """A row of the table of texts. fields: as JSON. terms: JSON, packed."""

    number: int
    id: str
    fields: str
    terms: bytes
    text: str


class StoredPassage(NamedTuple):
    """A row of the table of passages: of the text with this number, its characters from begin to end, and its terms
    from first to last."""

    number: int
    text_number: int
    begin: int
    end: int
    first: int
    last: int


def is_encodable(text: str) -> bool:
    """Whether a text can be encoded: lone surrogates cannot."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def rows_of(texts: object) -> Iterator[tuple[str | None, str, str]]:
    """Yields id, text and fields as JSON of each text that a caller of Python gives. Id None: the next free number.

    texts: strings, (id, text) or (id, text, fields), dicts of id, text and fields, a frame or a data set. All but an
    iterator is read whole before its first row is given. SettingsError for anything else; CorpusError for an id or a
    text that is not a string or not UTF-8.
    """
    texts = list_rows(texts)
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise SettingsError("texts is a {name}: {taken}", name=type(texts).__name__, taken=_TAKEN)
    rows = (_row(item, f"texts[{place}]") for place, item in enumerate(texts))
    return rows if isinstance(texts, Iterator) else iter(list(rows))


def _row(item: object, place: str) -> tuple[str | None, str, str]:
    row: Any = (None, item) if isinstance(item, str) else item
    if isinstance(item, Mapping):
        column = column_for(ROLES["text"].names, tuple(item))
        if column is None:
            raise SettingsError(
                "{place}: {one} is without a text: {taken}", place=place, one=", ".join(map(str, item)), taken=_TAKEN
            )
        id = item.get("id")
        fields = {key: value for key, value in item.items() if key not in ("id", column)}
        row = (str(id) if isinstance(id, int) else id, item[column], fields)
    is_row = isinstance(row, list | tuple) and len(row) in (2, 3) and all(isinstance(part, Mapping) for part in row[2:])
    if not is_row:
        raise SettingsError(
            "{place}: {one!r:.60} is a {name}: {taken}", place=place, one=item, name=type(item).__name__, taken=_TAKEN
        )
    id, text, *more = row
    if not isinstance(id, str | None) or not isinstance(text, str):
        raise CorpusError("id {id!r:.60}: id and text have to be strings, not {text!r:.60}", id=id, text=text)
    fields_json = fields_to_json(*more)
    if not is_encodable(f"{id}{text}{fields_json}"):
        raise CorpusError("id {id!r:.60}: has a lone surrogate, which no file can hold: remove it", id=id)
    return id, text, fields_json


def fields_to_json(fields: Fields = MappingProxyType({})) -> str:
    """The fields as JSON, which has no NaN and no dates; characters are kept, not escaped."""
    finite = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in fields.items()
    }
    return json.dumps(finite, ensure_ascii=False, default=str)


def read_stored(database: Connection, ids: Iterable[str]) -> dict[str, StoredText]:
    """Returns id -> text, for those of the ids that are in the index."""
    select = "SELECT number, fields, terms, text, checksum FROM texts WHERE id = ?"
    stored = {}
    for id in ids:
        if row := database.execute(select, (id,)).fetchone():
            stored[id] = StoredText(*checked_row(f"text {id!r:.60}", row[0], id, *row[1:]))
    return stored


def text_of(database: Connection, number: int) -> StoredText:
    """The text with a number. Damage if there is none."""
    row = database.execute("SELECT * FROM texts WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise Damage(Message("text {number} is missing", number=number))
    return StoredText(*checked_row(f"text {number}", *row))


def passage_of(database: Connection, number: int) -> StoredPassage:
    """The passage with a number. Damage if there is none."""
    row = database.execute("SELECT * FROM passages WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise Damage(Message("passage {number} is missing", number=number))
    return StoredPassage(*checked_row(f"passage {number}", *row))


def all_texts(
    database: Connection, condition: str = "NULL", values: Sequence[object] = ()
) -> Iterator[tuple[StoredText, object]]:
    """Each text, in the order of adding, with the value of an SQL expression over its row. Damage if some are lost."""
    num_left = read_meta(database, "texts")
    for value, *row in database.execute(f"SELECT {condition}, * FROM texts ORDER BY number", values):
        num_left -= 1
        yield StoredText(*checked_row(f"text {row[0]}", *row)), value
    if num_left:
        raise Damage(Message("{left:,} texts are missing", left=num_left))


def insert(
    database: Connection,
    rows: Sequence[tuple[str, str, str, list[str], Sequence[tuple[int, int, int, int]], Sequence[NDArray[np.float32]]]],
) -> None:
    """Inserts id, fields, text, terms, passages (begin, end, first, last) and their vectors (P, D) of each text."""
    last, last_text = (
        database.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()[0]
        for table in ("passages", "texts")
    )
    indexed = []
    owners = 0
    for number, (id, fields, text, terms, passages, vectors) in enumerate(rows, last_text + 1):
        row = number, id, fields, zlib.compress(json.dumps(terms, ensure_ascii=False).encode(), 1), text
        database.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)", (*row, checksum(*row)))
        for place, vector in zip(passages, vectors, strict=True):
            last += 1
            passage = StoredPassage(last, number, *place)
            database.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", (*passage, checksum(*passage)))
            packed = last, vector.tobytes()
            database.execute("INSERT INTO vectors VALUES (?, ?, ?)", (*packed, checksum(*packed)))
            indexed.append((last, terms[passage.first : passage.last]))
            owners += last * number
    add_postings(database, indexed)
    add_to_meta(database, texts=len(rows), owners=owners)


def replace_fields(database: Connection, text: StoredText, fields: str) -> None:
    """Gives a text other fields."""
    values = fields, checksum(*text._replace(fields=fields)), text.number
    database.execute("UPDATE texts SET fields = ?, checksum = ? WHERE number = ?", values)


def delete(database: Connection, numbers: list[int]) -> None:
    """Removes texts with their terms, passages and vectors."""
    terms_by_passage = {}
    owners = 0
    for number in numbers:
        text_terms = json.loads(zlib.decompress(text_of(database, number).terms))
        for row in database.execute("SELECT * FROM passages WHERE text = ?", (number,)):
            passage = StoredPassage(*checked_row(f"passage {row[0]}", *row))
            terms_by_passage[passage.number] = text_terms[passage.first : passage.last]
            owners += passage.number * number
    remove_postings(database, terms_by_passage)
    add_to_meta(database, texts=-len(numbers), owners=-owners)
    for table, removed_numbers in (("texts", numbers), ("passages", terms_by_passage), ("vectors", terms_by_passage)):
        database.executemany(f"DELETE FROM {table} WHERE number = ?", ((number,) for number in removed_numbers))
