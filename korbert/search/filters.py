"""Conditions on the fields of texts: an SQL expression over columns, which can read nothing else."""

import sqlite3

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError

_FUNCTIONS = {"json_extract", "like", "glob", "lower", "upper", "length", "substr", "trim", "abs", "coalesce", "ifnull"}


def numbers_where(database: sqlite3.Connection, where: str) -> NDArray[np.int64]:
    """The numbers, rising, of the texts that meet a condition such as "kind = '민사' AND date >= '2000'".

    Columns are the fields, id and text; a text without a field has NULL there, and one whose field is a list or an
    object its JSON. SettingsError for anything that is not an expression over these columns.
    """
    names = [name for (name,) in database.execute("SELECT name FROM fields ORDER BY name")]
    # A query has at most 2,000 columns, and a path has no way to write these characters.
    used = [name for name in names if name.lower() in where.lower() and not {'"', "\\"} & set(name)]
    columns = "".join(f', json_extract(fields, ?) AS "{name}"' for name in used)
    selects = 0

    def authorize(action: int, argument: str | None, other: str | None, *_: object) -> int:
        nonlocal selects
        selects += action == sqlite3.SQLITE_SELECT
        is_ours = (
            (action == sqlite3.SQLITE_SELECT and selects <= 2)  # the two below
            or (action == sqlite3.SQLITE_READ and argument == "texts")
            or (action == sqlite3.SQLITE_FUNCTION and other in _FUNCTIONS)
        )
        return sqlite3.SQLITE_OK if is_ours else sqlite3.SQLITE_DENY

    database.set_authorizer(authorize)
    try:
        rows = database.execute(
            f'SELECT "the number" FROM (SELECT number AS "the number", id, text{columns} FROM texts) WHERE ({where}\n)',
            [f'$."{name}"' for name in used],
        ).fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        known, what = ", ".join(["id", "text", *names][:20]), " ".join(str(error).split())
        raise SettingsError(
            f"where {where!r:.80}: {what}: write a condition such as \"kind = '민사'\" over the fields {known}"
        ) from None
    finally:
        database.set_authorizer(None)
    return np.sort(np.array([number for (number,) in rows], np.int64))
