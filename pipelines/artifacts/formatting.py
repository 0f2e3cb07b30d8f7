"""Formatting of numbers and paths for display."""

import re

from korbert.messages import Message

_SPACE = "\u00a0"  # keeps number and unit on one line
PERCENT = f"{_SPACE}%"
UNKNOWN = "–"


def count(number: float) -> str:
    """12345 -> 12,345."""
    return f"{round(number):,}"


def compact(number: float) -> str:
    """Three significant digits and a suffix: 12345678 -> 12.3 M. In full from 100 to 10,000."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= (1e4 if letter == "k" else 0.9995 * size):  # 999.6 k is 1 M
            return f"{number / size:.3g}{_SPACE}{letter}"
    return f"{number:.3g}" if abs(number) < 100 else count(number)


def decimal(number: float | None, decimals: int = 2) -> str:
    """3.14159 -> 3.14; None -> a dash."""
    return UNKNOWN if number is None else f"{number:,.{decimals}f}"


def percent(share: float | None, decimals: int = 1) -> str:
    """0.9342 -> 93.4 %; None -> a dash."""
    return UNKNOWN if share is None else f"{100 * share:.{decimals}f}{PERCENT}"


def ratio(part: float, whole: float) -> float:
    """part / whole; 0 if whole is 0."""
    return part / whole if whole else 0.0


def megabytes(size: float) -> str:
    """Bytes in decimal units: 1234567 -> 1.2 MB."""
    for unit, decimals in (("B", 0), ("kB", 0), ("MB", 1)):
        if size < 1000:
            return f"{size:.{decimals}f}{_SPACE}{unit}"
        size /= 1000
    return f"{size:,.1f}{_SPACE}GB"


def duration(seconds: float) -> Message:
    """3725 -> 1 h 2 min; 75 -> 1 min 15 s; 4.2 -> 4.2 s."""
    whole = round(seconds)
    if seconds < 10:
        return Message("{seconds:.1f}\u00a0s", seconds=seconds)
    if whole < 60:
        return Message("{seconds}\u00a0s", seconds=whole)
    if whole < 3600:
        return Message("{minutes}\u00a0min {seconds}\u00a0s", minutes=whole // 60, seconds=whole % 60)
    return Message("{hours}\u00a0h {minutes}\u00a0min", hours=whole // 3600, minutes=whole % 3600 // 60)


def value(thing: object) -> str:
    """Formats a setting, count or version of a record; integers with thousands separators."""
    if thing is None:
        return Message("none")
    if isinstance(thing, bool):
        return Message("yes") if thing else Message("no")
    if isinstance(thing, int):
        return count(thing)
    if isinstance(thing, float):
        return f"{thing:.6g}"
    return str(thing)


def without_folders(text: str) -> str:
    """Returns the text with absolute paths reduced to file names: /home/me/a.csv -> a.csv."""
    return re.sub(r"(?<![\w/])/(?:[^/\n:;,]+/)+", "", text)
