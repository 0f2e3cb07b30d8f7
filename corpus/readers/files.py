"""Finds files by name, folder, glob or address."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.names import glob_paths, is_litter, on_disk
from korbert.records import File

if TYPE_CHECKING:
    from upath import UPath

_DATASET_MARKS = ("state.json", "dataset_dict.json")  # written by `save_to_disk` of `datasets` next to Arrow files
_CACHED = "cache-*.arrow"  # results of `map` and `filter`, which `datasets` leaves next to them


def is_address(pattern: str) -> bool:
    """Whether fsspec opens it: s3://bucket/file, hf://datasets/owner/name/file and the like."""
    return "://" in pattern


def find_files(pattern: str, base: Path) -> tuple[File, ...]:
    """The files that match a pattern, sorted; empty if there are none.

    pattern: a file, a folder or a glob relative to `base`, or an address. A folder stands for all files below it except
    hidden ones (a name that begins with a dot, or in such a folder), a `datasets` data set on disk for its Arrow files.
    What file managers leave does not count. Names are compared in NFC.
    Raises CorpusError if an address cannot be reached, for a malformed glob, and for a name that is not UTF-8.
    """
    if is_address(pattern):
        return _find_remote(pattern)
    if Path(pattern).is_absolute():
        base = Path("/")
        pattern = pattern.lstrip("/")
    files: set[Path] = set()
    try:
        if pattern.rstrip("/") in ("", "."):
            matches = [base]
        elif (literal_path := on_disk(base / pattern)).exists():  # brackets in its name are no glob
            matches = [literal_path]
        else:
            matches = [path for path in glob_paths(base, pattern) if not is_litter(path.name)]
    except (ValueError, OSError) as error:
        raise CorpusError(
            "{pattern}: is no name of a file and no glob ({error}): correct it", pattern=pattern, error=error
        ) from None
    for path in matches:
        if path.is_file():
            files.add(path)
        elif path == base or not path.name.startswith("."):
            names = [file.relative_to(path) for file in path.rglob("*") if file.is_file()]
            files.update(path / name for name in _select_files(names))
    for path in sorted(files):
        check_name(path)
    return tuple(sorted(files))


def check_name(path: File) -> None:
    """Raises CorpusError if the name, of which ids and records are made, is not UTF-8, as in some old archives."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(str(path)).decode("utf-8", "backslashreplace")
        raise CorpusError(
            "{shown}: its name is not UTF-8, as in archives made under Windows (CP949): rename it; `convmv "
            "-r -f cp949 -t utf8 --notest FOLDER` does so for all files of a folder",
            shown=shown,
        ) from None


def _select_files(names: Iterable[Path]) -> list[Path]:
    """The names, relative to a folder, without hidden files and without the metadata and cached files of `datasets`."""
    visible_names = [name for name in names if not any(part.startswith(".") or is_litter(part) for part in name.parts)]
    datasets = {name.parent for name in visible_names if name.name in _DATASET_MARKS}
    return [
        name
        for name in visible_names
        if datasets.isdisjoint(name.parents) or (name.suffix == ".arrow" and not name.match(_CACHED))
    ]


def _find_remote(pattern: str) -> tuple["UPath", ...]:
    from fsspec.core import url_to_fs
    from upath import UPath

    with _reachable(pattern):
        system, path = url_to_fs(pattern)
        if any(char in path for char in "*?["):
            names = [name for name in system.glob(path) if system.isfile(name) and not is_litter(Path(name).name)]
        elif system.isdir(path):
            names_below = {Path(name).relative_to(path): name for name in system.find(path)}
            names = [names_below[name] for name in _select_files(names_below)]
        else:
            names = [path] if system.exists(path) else []
        return tuple(UPath(system.unstrip_protocol(name)) for name in sorted(names))


def remote_version(file: "UPath") -> tuple[int, str]:
    """The size, and a digest of the version that the file system reports (an ETag, a commit). Raises CorpusError."""
    with _reachable(str(file)):
        size = int(file.fs.info(file.path)["size"])
        return size, hashlib.sha256(str(file.fs.ukey(file.path)).encode()).hexdigest()


@contextmanager
def _reachable(address: str) -> Iterator[None]:
    """Turns any error into a CorpusError that names the address."""
    try:
        yield
    except Exception as error:  # each file system has its own errors
        cause = " ".join(str(error).split()) or type(error).__name__
        hint = Message("check the address and your rights")
        if isinstance(error, ImportError | ValueError):
            hint = Message("install that package")
        raise CorpusError(
            "{address}: cannot be reached ({cause}): {hint}", address=address, cause=cause, hint=hint
        ) from error
