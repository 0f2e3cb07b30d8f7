"""Conditions on the fields of texts. Only known tokens reach SQLite, and values only as parameters."""

import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.messages import Message, reason
from korbert.search.database import read_meta
from korbert.search.texts import all_texts

_KEYWORDS = ("AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "FALSE")
_FUNCTIONS = ("LOWER", "UPPER", "LENGTH", "SUBSTR", "TRIM", "ABS", "COALESCE")
_TOKEN = re.compile(
    r"""'(?P<text>(?:[^']|'')*)' | "(?P<quoted>(?:[^"]|"")*)" | (?P<function>[a-z]+)(?=\s*\() | (?P<word>[^\W\d]\w*)
    | (?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?) | (?P<sign><=|>=|<>|!=|[=<>(),]) | (?P<space>\s+)
    | (?P<other>.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def numbers_where(database: sqlite3.Connection, where: str) -> NDArray[np.int64]:
    """The numbers, rising, of the texts that meet a condition such as "kind = '민사' AND date >= '2000'".

    A condition has fields as they are written, id and text; strings and numbers; comparisons, IN, LIKE, BETWEEN, IS
    NULL; AND, OR, NOT and parentheses; and a few functions. A text without a field has NULL there, and one whose field
    is a list or an object its JSON. As in SQLite, a number is smaller than any string: fields of a CSV file are
    strings, of which `ABS(year)` is the number. SettingsError for anything else.
    """
    field_names = read_meta(database, "fields")
    with _refusing(where, field_names):
        condition, values = _as_sql(where, field_names)
        rows = all_texts(database, condition, values)
        return np.array([row.number for row, met in rows if met], np.int64)


def check_where(database: sqlite3.Connection, where: str) -> None:
    """SettingsError if this is no condition as of `numbers_where`. Reads no text, on which it may still fail."""
    field_names = read_meta(database, "fields")
    with _refusing(where, field_names):
        condition, values = _as_sql(where, field_names)
        database.execute(f"SELECT {condition} FROM texts LIMIT 0", values)


@contextmanager
def _refusing(where: str, field_names: Collection[str]) -> Iterator[None]:
    """Raises SettingsError for an error of the condition inside."""
    try:
        yield
    except (ValueError, sqlite3.OperationalError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:  # not of the condition
            raise
        names = ", ".join(["id", "text", *field_names][:20])
        raise SettingsError(
            "where {where!r:.80}: {error}: write a condition such as \"kind = '민사'\" over the fields {names}",
            where=where,
            error=reason(error),
            names=names,
        ) from None


def _as_sql(where: str, field_names: Collection[str]) -> tuple[str, list[str | float]]:
    """Returns an SQL expression over a row of the table of texts, and the values of its question marks.

    ValueError for a token that no condition has, and for a parenthesis without its counterpart.
    """
    parts = ["("]
    values: list[str | float] = []
    depth = 0
    for match in _TOKEN.finditer(where):
        kind = match.lastgroup or ""
        token = match[kind]
        upper = token.upper()
        depth += (match["sign"] == "(") - (match["sign"] == ")")
        if kind == "other" or depth < 0:
            raise ValueError(Message("cannot be read at {rest!r:.40}", rest=where[match.start() :]))
        if kind in ("space", "sign") or (kind == "function" and upper in _FUNCTIONS):
            parts.append(token)
        elif kind == "text":
            parts.append("?")
            values.append(token.replace("''", "'"))
        elif kind == "number":
            is_whole = token.lstrip("+-").isdigit() and abs(int(token)) < 1 << 63  # more is too large for SQLite
            parts.append("?")
            values.append(int(token) if is_whole else float(token))
        elif kind != "quoted" and upper in _KEYWORDS:
            parts.append(f" {upper} ")
        elif token in ("id", "text"):
            parts.append(token)
        else:
            name = token.replace('""', '"')
            if name not in field_names:
                raise ValueError(Message("no such column: {name}", name=name))
            parts.append("(SELECT value FROM json_each(fields) WHERE key = ?)")
            values.append(name)
    if depth:
        raise ValueError(Message("a parenthesis is not closed"))
    return f"{''.join(parts)})", values
