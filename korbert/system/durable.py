"""Files that are whole or absent even after a crash, with checksums that reveal damage when they are read.

Writing: check_output (before the work), write_bytes_atomically and write_json, or write_atomically for what a library
writes. All go through write_atomically: a new file of a random name, which is renamed.
Checking: sha256_of a file; add_checksum and verify_checksum for a JSON record that carries its own SHA-256.
Reading: read_small for small files of text, read_json and read_object, with readable error messages.
"""

import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

from korbert.errors import SettingsError
from korbert.messages import Message

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object as a Python dict."""

_ASIDE = re.compile(r"\.korbert-[0-9a-f]{16}")
_CHECKSUM = "record_sha256"
_SMALL = 16 << 20  # bytes of a record; as Python objects it takes some twenty times as many
_KINDS = {
    stat.S_IFDIR: Message("a folder"),
    stat.S_IFLNK: Message("a symbolic link"),
    stat.S_IFIFO: Message("a named pipe"),
    stat.S_IFSOCK: Message("a socket"),
    stat.S_IFCHR: Message("a device"),
    stat.S_IFBLK: Message("a device"),
}


def check_output(path: Path, *inputs: object, may_overwrite: Callable[[Path], bool] = lambda path: False) -> None:
    """Refuses an output that could not be written, before the work for it begins.

    inputs: files and folders that the command reads; what is not a Path, such as a pipe or an address, is ignored.
    may_overwrite: whether a file that is there may be written over; by default none. Raises SettingsError if the path
    has no file name, if its folder is absent or write-protected, if something other than a regular file is there (a
    folder, a link, a device, a pipe), if the file there is write-protected or may not be written over, and if the path
    is one of the inputs or lies in one.
    """
    folder = path.parent
    if not path.name:
        raise SettingsError("{path!r}: is not a file name: name a file", path=str(path))
    if not os.path.isdir(folder):  # noqa: PTH112 (False, too, if a folder above may not be entered)
        raise SettingsError(
            "{path}: there is no folder {folder}: make it, or name another file", path=path, folder=folder
        )
    try:
        existing_status: os.stat_result | None = path.lstat()
    except FileNotFoundError:
        existing_status = None
    except OSError as error:
        raise SettingsError(
            "{path}: cannot be written ({strerror}): name another file", path=path, strerror=error.strerror
        ) from None
    if existing_status is not None and not stat.S_ISREG(existing_status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(existing_status.st_mode), Message("not a regular file"))
        raise SettingsError("{path}: is {kind}, which is not written over: name a file", path=path, kind=kind)
    for source in (source for source in inputs if isinstance(source, Path)):
        if existing_status is not None and os.path.exists(source) and path.samefile(source):  # noqa: PTH110 (as above)
            raise SettingsError("{path}: is the file that is read: name another one for the result", path=path)
    check_outside(path, *inputs)
    if not may_write(folder, os.W_OK | os.X_OK):
        raise SettingsError(
            "{path}: the folder {folder} may not be written to: name another one", path=path, folder=folder
        )
    if existing_status is not None and not may_write(path):
        raise SettingsError("{path}: is protected from writing: name another file", path=path)
    if existing_status is not None and not may_overwrite(path):
        raise SettingsError(
            "{path}: already exists, and is not written over: name another file, or remove it", path=path
        )


def check_outside(path: Path, *inputs: object) -> None:
    """SettingsError for an output that is, or lies in, a folder that the command reads. inputs: as of check_output."""
    for source in inputs:
        if not isinstance(source, Path) or not os.path.isdir(source):  # noqa: PTH112 (as in check_output)
            continue
        # Not resolve(), which raises for a circle of links.
        if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(source)):
            raise SettingsError("{path}: lies in {source}, which is read: name another place", path=path, source=source)


def may_write(path: Path, how: int = os.W_OK) -> bool:
    """os.access, for the effective user if the system supports it."""
    return os.access(path, how, effective_ids=os.access in os.supports_effective_ids)


def is_aside(name: str) -> bool:
    """Whether a file of this name was being written when its run was killed."""
    return _ASIDE.fullmatch(name) is not None


def write_bytes_atomically(path: Path, data: bytes | memoryview, *, scratch: Path | None = None) -> None:
    """Replaces the file atomically: a reader sees the old or the new one. scratch: as of write_atomically."""
    write_atomically(path, lambda file: file.write(data), scratch=scratch)


def write_atomically(path: Path, write: Callable[[IO[bytes]], object], *, scratch: Path | None = None) -> None:
    """Calls `write` with a new file of a random name, syncs it and renames it to `path`. Creates its folder if needed.

    scratch: the folder of the new file, on the same disk; None: that of `path`. An error leaves no file behind. An
    OSError that names no file (Arrow's) gets the name of `path`. Raises SettingsError as `check_output` does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    check_output(path, may_overwrite=Path.is_file)
    temporary = (scratch or path.parent) / f".korbert-{secrets.token_hex(8)}"
    try:
        with open(temporary, "x+b", opener=_no_link) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


def _no_link(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)  # with "x", O_CREAT | O_EXCL


def sync(path: Path) -> None:
    """Syncs the file's bytes, or the names in the folder, to disk. On Windows, which opens no folders, files alone."""
    if os.name == "nt" and path.is_dir():
        return
    mode = os.O_RDWR if os.name == "nt" else os.O_RDONLY
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_regular(path: Path) -> None:
    """OSError for anything but a regular file, or a link to one: a pipe may block, and a device never end."""
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind != stat.S_IFREG:
        code = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
        what = Message("is {kind}, not a file", kind=_KINDS.get(kind, Message("something else")))
        raise OSError(code, what, str(path))


def read_small(path: Path, most: int = _SMALL) -> bytes:
    """The bytes of a regular file. OSError if it cannot be read, or has more than `most` bytes."""
    check_regular(path)
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EINVAL, Message("has more than {most:,} bytes", most=most), str(path))
    return data


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal. OSError as of check_regular."""
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest(data: bytes | memoryview) -> str:
    """The part of SHA-256 by which a cached file is named, for `intact` to check."""
    return hashlib.sha256(data).hexdigest()[:16]


def intact(folder: Path, name: str) -> Path | None:
    """The cached file NAME-CONTENT.* whose bytes have the digest CONTENT; None if absent. Damaged ones are removed."""
    for path in folder.glob(f"{name}-*"):
        if is_intact(path):
            return path
        path.unlink()
    return None


def is_intact(path: Path) -> bool:
    """Whether a cached file has the content that its name says."""
    return path.is_file() and not path.is_symlink() and path.stem.endswith(f"-{sha256_of(path)[:16]}")


def write_json(path: Path, value: object, *, sort_keys: bool = False) -> None:
    """Writes indented JSON in UTF-8, as `write_bytes_atomically` does.

    A lone surrogate, which UTF-8 cannot hold, is written as its escape. ValueError for NaN and infinities, which JSON
    does not have.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1, sort_keys=sort_keys) + "\n"
    write_bytes_atomically(path, text.encode("utf-8", "backslashreplace"))


def read_json(path: Path) -> Any:
    """The JSON value in a small file. Raises OSError, or a readable ValueError if it is not JSON.

    NaN, infinity and numbers beyond float64 are not JSON.
    """
    try:
        return json.loads(read_small(path).decode(), parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError(Message("is nested too deeply")) from None


def read_object(path: Path) -> dict[str, Any]:
    """As read_json; {} if the value is not an object."""
    value = read_json(path)
    return value if isinstance(value, dict) else {}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(Message("{text} is not a finite number", text=text))
    return number


def add_checksum(record: Mapping[str, object]) -> bytes:
    """JSON bytes whose last entry is the SHA-256 of everything before it. Equal records give equal bytes."""
    return _to_json({**record, _CHECKSUM: hashlib.sha256(_to_json(record)).hexdigest()})


def verify_checksum(data: bytes) -> dict[str, Any]:
    """Parses bytes written by `add_checksum`. A readable ValueError if any byte was changed."""
    try:
        record = json.loads(data)
    except RecursionError:
        raise ValueError(Message("is nested too deeply")) from None
    if not isinstance(record, dict) or _CHECKSUM not in record:
        raise ValueError(
            Message("has no {field}: it is not a record, or was written by an older korbert", field=_CHECKSUM)
        )
    del record[_CHECKSUM]
    if data != add_checksum(record):
        raise ValueError(Message("is not as it was written"))
    return record


def _to_json(record: Mapping[str, object]) -> bytes:
    return json.dumps(record, ensure_ascii=False, indent=1).encode()
