"""The texts of an index in its database: with their fields, terms and vectors, all of them or none."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sqlite3 import Connection
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message
from korbert.records import list_rows
from korbert.search.database import Damage, checked_row, checksum, read_meta
from korbert.search.words import add_postings, remove_postings
from korbert.tasks.files import ROLES, column_for

Fields = Mapping[str, Any]  # what else is known about a text: any JSON

_TAKEN = Message(
    "give strings, (id, text) or (id, text, fields), dicts with a text, a frame of pandas or polars, or a Dataset"
)


class StoredText(NamedTuple):
    """A row of the table of texts. document: the id of the document that the text is the characters begin to end of:
    so far itself, from 0 to its length. fields, terms: as JSON."""

    number: int
    id: str
    document: str
    begin: int
    end: int
    fields: str
    terms: str
    text: str


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded: lone surrogates cannot."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def rows_of(texts: object) -> Iterator[tuple[str | None, str, str]]:
    """Id, text and fields as JSON of each of the texts that a caller of Python gives. Id None: the next free number.

    texts: strings, (id, text) or (id, text, fields), dicts of id, text and fields, a frame or a data set. All but an
    iterator is read whole before its first row is given. SettingsError for anything else; CorpusError for an id or a
    text that is not a string or not UTF-8.
    """
    texts = list_rows(texts)
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise SettingsError("texts is a {name}: {taken}", name=type(texts).__name__, taken=_TAKEN)
    rows = (_row(one, f"texts[{place}]") for place, one in enumerate(texts))
    return rows if isinstance(texts, Iterator) else iter(list(rows))


def _row(one: object, place: str) -> tuple[str | None, str, str]:
    row: Any = (None, one) if isinstance(one, str) else one
    if isinstance(one, Mapping):
        column = column_for(ROLES["text"].names, tuple(one))
        if column is None:
            raise SettingsError(
                "{place}: {one} is without a text: {taken}", place=place, one=", ".join(map(str, one)), taken=_TAKEN
            )
        id = one.get("id")
        fields = {key: value for key, value in one.items() if key not in ("id", column)}
        row = (str(id) if isinstance(id, int) else id, one[column], fields)
    is_row = isinstance(row, list | tuple) and len(row) in (2, 3) and all(isinstance(own, Mapping) for own in row[2:])
    if not is_row:
        raise SettingsError(
            "{place}: {one!r:.60} is a {name}: {taken}", place=place, one=one, name=type(one).__name__, taken=_TAKEN
        )
    id, text, *more = row
    if not isinstance(id, str | None) or not isinstance(text, str):
        raise CorpusError("id {id!r:.60}: id and text have to be strings, not {text!r:.60}", id=id, text=text)
    kept = json_of(*more)
    if not is_utf8(f"{id}{text}{kept}"):
        raise CorpusError("id {id!r:.60}: has a lone surrogate, which no file can hold: remove it", id=id)
    return id, text, kept


def json_of(fields: Fields = MappingProxyType({})) -> str:
    """The fields as JSON, which has no NaN and no dates."""
    finite = {key: None if isinstance(own, float) and not math.isfinite(own) else own for key, own in fields.items()}
    return json.dumps(finite, ensure_ascii=False, default=str)


def read_stored(database: Connection, ids: Iterable[str]) -> dict[str, StoredText]:
    """Those of the ids that are in the index, with their texts."""
    select = 'SELECT number, document, "begin", "end", fields, terms, text, checksum FROM texts WHERE id = ?'
    found = {}
    for id in ids:
        if row := database.execute(select, (id,)).fetchone():
            found[id] = StoredText(*checked_row(f"text {id!r:.60}", row[0], id, *row[1:]))
    return found


def text_of(database: Connection, number: int) -> StoredText:
    """The text with a number. Damage if there is none."""
    row = database.execute("SELECT * FROM texts WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise Damage(Message("text {number} is missing", number=number))
    return StoredText(*checked_row(f"text {number}", *row))


def all_texts(
    database: Connection, condition: str = "NULL", values: Sequence[object] = ()
) -> Iterator[tuple[StoredText, object]]:
    """Each text, in the order of adding, with the value of an SQL expression over its row. Damage if some are lost."""
    left = read_meta(database, "texts")
    for met, *row in database.execute(f"SELECT {condition}, * FROM texts ORDER BY number", values):
        left -= 1
        yield StoredText(*checked_row(f"text {row[0]}", *row)), met
    if left:
        raise Damage(Message("{left:,} texts are missing", left=left))


def insert(database: Connection, rows: list[tuple[str, str, str, list[str], NDArray[np.float32]]]) -> None:
    """Inserts id, fields, text, terms and vector of each text."""
    (last,) = database.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'texts'").fetchone()
    indexed = []
    for number, (id, fields, text, terms, vector) in enumerate(rows, last + 1):
        row = number, id, id, 0, len(text), fields, json.dumps(terms, ensure_ascii=False), text
        database.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, checksum(*row)))
        own = number, vector.tobytes()
        database.execute("INSERT INTO vectors VALUES (?, ?, ?)", (*own, checksum(*own)))
        indexed.append((number, terms))
    add_postings(database, indexed)


def replace_fields(database: Connection, text: StoredText, fields: str) -> None:
    """Gives a text other fields."""
    values = fields, checksum(*text._replace(fields=fields)), text.number
    database.execute("UPDATE texts SET fields = ?, checksum = ? WHERE number = ?", values)


def delete(database: Connection, numbers: list[int]) -> None:
    """Removes texts with their terms and vectors."""
    remove_postings(database, {number: json.loads(text_of(database, number).terms) for number in numbers})
    for table in ("texts", "vectors"):
        database.executemany(f"DELETE FROM {table} WHERE number = ?", ((number,) for number in numbers))
