"""Untrusted text on a terminal must not move the cursor, set colours or hide other text."""

import unicodedata

__all__ = ["printable"]

_KEPT = frozenset("\n\t")
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format (bidi marks, zero width), surrogates, line separators
_JOINER = "\u200d"  # joins the parts of many emoji


def printable(text: str) -> str:
    """The text with control and invisible characters escaped: ESC becomes `\\x1b`, U+202E `\\u202e`.

    Line feeds, tabs and the joiner inside emoji are kept.
    """
    return "".join(
        char if char in _KEPT or char == _JOINER or unicodedata.category(char) not in _HIDDEN else _escaped(char)
        for char in text
    )


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char.encode("unicode_escape").decode()
