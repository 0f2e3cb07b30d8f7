"""Untrusted text on a terminal must not move the cursor, set colours or hide other text.

All output for people goes through here: `say` for lines, `console` for tables, `Messages` for the log. Only JSON and
JSON lines, which programs read, are printed as they are.
"""

import logging
import unicodedata
from copy import copy
from typing import TYPE_CHECKING, Any

from korbert.messages import Message, in_language

if TYPE_CHECKING:
    from rich.console import Console

_KEPT = frozenset("\n\t\u200d")  # the last one joins the parts of many emoji
_LONGEST = 2_000  # characters of a message
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format (bidi marks, zero width), surrogates, line separators


def printable(text: str) -> str:
    """The text with control and invisible characters escaped: ESC becomes `\\x1b`, U+202E `\\u202e`.

    Line feeds, tabs and the joiner inside emoji are kept.
    """
    return "".join(
        char if char in _KEPT or unicodedata.category(char) not in _HIDDEN else char.encode("unicode_escape").decode()
        for char in text
    )


def in_one_line(message: str) -> str:
    """A message, printable and shortened, whose file names cannot break it in two. Items listed below it stay there."""
    parts = shorten(message).split("\n  ")
    return shorten("\n  ".join(printable(part).replace("\n", "\\n") for part in parts))


def shorten(message: str) -> str:
    """At most 2,000 characters of a message: its beginning and end, which say where the fault is and what to do."""
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 505]} ... {message[-500:]}"


def say(line: object, *, err: bool = False) -> None:
    """Prints a line for people on standard output or, with `err`, standard error."""
    import click

    words = in_language(line) if isinstance(line, str) else str(line)
    click.echo(printable(words), err=err)


def console(**options: Any) -> "Console":
    """A console of rich for tables and lines, whose cells are printable."""
    from rich.console import Console
    from rich.text import Text

    class Printable(Console):
        def render_str(self, text: str, **how: Any) -> Text:
            return super().render_str(printable(in_language(text)), **how)

    return Printable(**options)


class Messages(logging.Formatter):
    """Formats log messages, each printable."""

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.msg, Message):
            record = copy(record)
            record.msg = in_language(record.msg)
            if record.args:  # of a line that is formatted
                record.msg = record.msg.replace("%", "%%")
        return printable(super().format(record))
