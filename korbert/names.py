"""Names of files, columns and keys, compared in NFC: macOS gives the names of files in NFD."""

import difflib
import fnmatch
import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from korbert.messages import Message

BLANK = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""White space, and characters without width: `label.strip(BLANK)`."""

_LITTER = ("thumbs.db", "desktop.ini", ".ds_store")


def is_litter(name: str) -> bool:
    """Whether a file manager of macOS or Windows leaves files of this name in folders: they are ignored, and kept."""
    return name.startswith("._") or name.lower() in _LITTER


def nfc(name: str) -> str:
    """The name in NFC."""
    return unicodedata.normalize("NFC", name)


def same_name(name: str, other: str) -> bool:
    """Whether two names are equal in NFC."""
    return name == other or nfc(name) == nfc(other)


def on_disk(path: Path) -> Path:
    """Returns `path` if it exists, else the existing path that equals it in NFC; `path` if there is none."""
    # os.path.exists is False, too, for what is too long to be a name, such as a text.
    if str(path).isascii() or os.path.exists(path) or path.parent == path:  # noqa: PTH110
        return path
    folder = on_disk(path.parent)
    siblings = folder.iterdir() if folder.is_dir() else ()
    return next((sibling for sibling in siblings if same_name(sibling.name, path.name)), path)


def glob_paths(folder: Path, pattern: str) -> Iterator[Path]:
    """The paths below a folder that match a glob, as Path.glob finds them. Raises ValueError for a malformed one."""
    if pattern.isascii():
        return folder.glob(pattern)
    return _glob_parts(folder, Path(pattern).parts)


def _glob_parts(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    if not parts:
        yield folder
    elif parts[0] == "**":
        for below in folder.glob("**"):
            yield from _glob_parts(below, parts[1:])
    elif parts[0] == "..":
        yield from _glob_parts(folder / "..", parts[1:])
    elif folder.is_dir():
        for path in folder.iterdir():
            if fnmatch.fnmatchcase(nfc(path.name), nfc(parts[0])):
                yield from _glob_parts(path, parts[1:])


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> Message:
    """Asks about the known name that is closest to this one; empty if none is close (difflib's cutoff)."""
    matches = difflib.get_close_matches(name, list(known), 1, cutoff)
    return Message("did you mean {name}?", name=matches[0]) if matches else Message("")
