"""Conditions on the fields of texts: read as a small language, and given to SQLite with their values apart.

condition   = all ("OR" all)*          all = one ("AND" one)*
one         = "NOT" one | "(" condition ")" | operand test
test        = sign operand | ["NOT"] "IN" list | ["NOT"] "LIKE" operand | ["NOT"] "BETWEEN" operand "AND" operand
            | "IS" ["NOT"] "NULL"
operand     = 'text' | number | true | false | field | "field" | function list
list        = "(" operand ("," operand)* ")"
"""

import re
import sqlite3
from collections.abc import Callable, Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.search.database import read_meta
from korbert.search.texts import all_texts

_SIGNS = ("<=", ">=", "<>", "!=", "=", "<", ">")
_FUNCTIONS = ("lower", "upper", "length", "substr", "trim", "abs", "coalesce")
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^']|'')*') | (?P<quoted>"(?:[^"]|"")*") | (?P<word>[^\W\d]\w*)
    | (?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?) | (?P<sign><=|>=|<>|!=|[=<>(),])
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_FIELD = "(SELECT value FROM json_each(fields) WHERE key = ?)"


def numbers_where(database: sqlite3.Connection, where: str) -> NDArray[np.int64]:
    """The numbers, rising, of the texts that meet a condition such as "kind = '민사' AND date >= '2000'".

    Names are those of the fields as they are written, id and text. A text without a field has NULL there, and one whose
    field is a list or an object its JSON. SettingsError for anything that is not a condition.
    """
    known = read_meta(database, "fields")
    try:
        condition = _Condition(where, known)
        rows = all_texts(database, condition.sql, condition.values)
        return np.array([row.number for row, met in rows if met], np.int64)
    except (ValueError, RecursionError, sqlite3.OperationalError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:  # not of the condition
            raise
        names, what = ", ".join(["id", "text", *known][:20]), " ".join(str(error).split())
        raise SettingsError(
            f"where {where!r:.80}: {what}: write a condition such as \"kind = '민사'\" over the fields {names}"
        ) from None


class _Condition:
    """A condition as SQL over a row of the table of texts. values: for the question marks in `sql`."""

    def __init__(self, where: str, known: Collection[str]) -> None:
        self.tokens, self.at, self.known = [*_tokens(where), ("end", "the end")], 0, known
        self.values: list[str | float] = []
        self.sql = self._any()
        if self.tokens[self.at][0] != "end":
            raise self._fault()

    def _any(self) -> str:
        return self._joined("OR", lambda: self._joined("AND", self._one))

    def _joined(self, word: str, read: Callable[[], str]) -> str:
        parts = [read()]
        while self._takes(word):
            parts.append(read())
        return f"({f' {word} '.join(parts)})"

    def _one(self) -> str:
        if self._takes("NOT"):
            return f"(NOT {self._one()})"
        if self._takes("("):
            inner = self._any()
            self._expect(")")
            return inner
        left = self._operand()
        for sign in _SIGNS:
            if self._takes(sign):
                return f"{left} {sign} {self._operand()}"
        if self._takes("IS"):
            test = "IS NOT NULL" if self._takes("NOT") else "IS NULL"
            self._expect("NULL")
            return f"{left} {test}"
        negated = "NOT " if self._takes("NOT") else ""
        if self._takes("IN"):
            return f"{left} {negated}IN {self._list()}"
        if self._takes("LIKE"):
            return f"{left} {negated}LIKE {self._operand()}"
        self._expect("BETWEEN")
        lowest = self._operand()
        self._expect("AND")
        return f"{left} {negated}BETWEEN {lowest} AND {self._operand()}"

    def _list(self) -> str:
        self._expect("(")
        parts = [self._operand()]
        while self._takes(","):
            parts.append(self._operand())
        self._expect(")")
        return f"({', '.join(parts)})"

    def _operand(self) -> str:
        kind, text = self.tokens[self.at]
        if kind in ("sign", "end"):
            raise self._fault()
        self.at += 1
        if kind == "word" and text.lower() in _FUNCTIONS and self.tokens[self.at] == ("sign", "("):
            return f"{text.lower()}{self._list()}"
        if kind == "word" and text.lower() in ("true", "false"):
            return "1" if text.lower() == "true" else "0"
        if kind in ("word", "quoted"):
            if text in ("id", "text"):
                return text
            if text not in self.known:
                raise ValueError(f"no such column: {text}")
            self.values.append(text)
            return _FIELD
        whole = kind == "number" and text.lstrip("+-").isdigit() and abs(int(text)) < 2**63
        self.values.append(text if kind == "text" else int(text) if whole else float(text))
        return "?"

    def _takes(self, word: str) -> bool:
        """Goes on behind this word or sign, if it is the next."""
        kind, text = self.tokens[self.at]
        is_next = kind in ("word", "sign") and text.upper() == word
        self.at += is_next
        return is_next

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise self._fault()

    def _fault(self) -> ValueError:
        return ValueError(f"cannot be read at {self.tokens[self.at][1]!r:.40}")


def _tokens(where: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each token; quotation marks are left out."""
    at = 0
    while where[at:].strip():
        match = _TOKEN.match(where, at)
        if match is None:
            raise ValueError(f"cannot be read at {where[at:].strip()!r:.40}")
        kind, text = match.lastgroup or "", match.group().strip()
        at = match.end()
        yield kind, text[1:-1].replace(2 * text[0], text[0]) if kind in ("text", "quoted") else text
