"""Files that are whole or absent, whatever moment a run is cut off, and that replace nothing but regular files."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from korbert.errors import SettingsError

__all__ = ["check_output", "may_write", "write_json", "write_whole"]


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse an output that could not be written, before the work whose result it is.

    inputs: files and folders that the command reads. Raises SettingsError where the folder is absent or may not be
    written to, where something other than a regular file is there (a folder, a link, a device, a pipe) or one that may
    not be written to, and where the path is one of the inputs or lies in one.
    """
    folder = path.parent
    if not path.name:
        raise SettingsError(f"{str(path)!r}: is no name of a file: name one")
    if not os.path.isdir(folder):  # noqa: PTH112 (False, too, where a folder above may not be entered)
        raise SettingsError(f"{path}: there is no folder {folder}: make it, or name another file")
    try:
        _aside(path).lstat()  # its name is the longer one
    except FileNotFoundError:
        pass
    except OSError as error:
        raise SettingsError(f"{path}: cannot be written ({error.strerror}): name another file") from None
    found = path.lstat() if os.path.lexists(path) else None
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise SettingsError(f"{path}: is {_kind(found.st_mode)}, which is not written over: name a file")
    for one in inputs:
        if found is not None and one.exists() and path.samefile(one):
            raise SettingsError(f"{path}: is the file that is read: name another one for the result")
        if one.is_dir() and path.resolve().is_relative_to(one.resolve()):
            raise SettingsError(f"{path}: lies in {one}, which is read: name a file elsewhere")
    if not may_write(folder, os.W_OK | os.X_OK):
        raise SettingsError(f"{path}: the folder {folder} may not be written to: name another one")
    if found is not None and not may_write(path):
        raise SettingsError(f"{path}: is protected from writing: name another file")


def may_write(path: Path, how: int = os.W_OK) -> bool:
    """os.access for the effective user, where the system supports it."""
    return os.access(path, how, effective_ids=os.access in os.supports_effective_ids)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")  # the same for every run: what a killed one left is written over


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "no regular file")


def write_whole(path: Path, data: bytes | memoryview, *, aside: Path | None = None) -> None:
    """Written aside, synced, renamed: a reader sees the old file or the new one. Its folder is made if absent.

    aside: where it is written first, on the same disk; None: beside it, as `.NAME.tmp`.
    Raises SettingsError as `check_output` does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    check_output(path)
    aside = aside or _aside(path)
    aside.unlink(missing_ok=True)
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Readable JSON in UTF-8, as `write_whole` writes it.

    A lone surrogate, which UTF-8 cannot hold but JSON can, is written as its escape. ValueError for a number that is
    none (NaN, infinities), which JSON has not.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    write_whole(path, text.encode("utf-8", "backslashreplace"))
