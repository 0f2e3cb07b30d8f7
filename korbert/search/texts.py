"""The texts of an index in its database: with their fields, terms and vectors, all of them or none."""

import json
import math
from collections.abc import Iterable, Mapping
from sqlite3 import Connection
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.search.postings import add_postings, remove_postings

Fields = Mapping[str, Any]
"""What else is known about a text: any JSON."""


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded: lone surrogates cannot."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def json_of(fields: Fields = MappingProxyType({})) -> str:
    """The fields as JSON, which has no NaN and no dates."""
    finite = {key: None if isinstance(own, float) and not math.isfinite(own) else own for key, own in fields.items()}
    return json.dumps(finite, ensure_ascii=False, default=str)


def stored(database: Connection, ids: Iterable[str]) -> dict[str, tuple[int, str, str]]:
    """Number, text and fields of those ids that are in the index."""
    select = "SELECT number, text, fields FROM texts WHERE id = ?"
    rows = ((id, database.execute(select, (id,)).fetchone()) for id in ids)
    return {id: row for id, row in rows if row is not None}


def insert(database: Connection, rows: list[tuple[str, str, str, list[str], NDArray[np.float32]]]) -> None:
    """Inserts id, fields, text, terms and vector of each text."""
    numbers = []
    for id, fields, text, terms, vector in rows:
        columns = id, fields, json.dumps(terms, ensure_ascii=False), text
        insert = "INSERT INTO texts (id, fields, terms, text) VALUES (?, ?, ?, ?)"
        numbers.append(database.execute(insert, columns).lastrowid or 0)
        database.execute("INSERT INTO vectors VALUES (?, ?)", (numbers[-1], vector.tobytes()))
    add_postings(database, zip(numbers, (terms for *_, terms, _ in rows), strict=True))


def delete(database: Connection, numbers: list[int]) -> None:
    remove_postings(database, numbers)
    for table in ("texts", "vectors"):
        database.executemany(f"DELETE FROM {table} WHERE number = ?", ((number,) for number in numbers))
