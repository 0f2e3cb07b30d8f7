"""Names of files, columns and keys, compared in NFC: macOS gives file names in NFD, and tools write what they get."""

import unicodedata
from pathlib import Path

__all__ = ["on_disk", "same_name"]


def same_name(one: str, other: str) -> bool:
    """Whether two names are equal in NFC."""
    return one == other or unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


def on_disk(path: Path) -> Path:
    """The path as its folders spell it, if only its Unicode form differs; else the path itself.

    >>> on_disk(Path("영화.csv")).name  # of a file from a Mac
    '영화.csv'
    """
    if path.exists() or str(path).isascii():
        return path
    folder = on_disk(path.parent)
    try:
        return next((below for below in folder.iterdir() if same_name(below.name, path.name)), path)
    except OSError:
        return path
