"""Folders that korbert makes and removes: the only place that removes a folder.

A command removes what it made in this run or what is marked as its own, never a folder by its name. `claim` makes a
folder for unfinished work, with a mark inside; `remove` removes it. Of a folder with a record of its own, such as an
artifact, `remove_listed` removes the files that this record lists. `new_folder` is for what is written in one go.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from korbert.errors import ArtifactError, SettingsError
from korbert.names import is_litter
from korbert.system.durable import check_outside, is_aside, may_write, sync

_logger = logging.getLogger(__name__)

MARK = ".korbert"
_TEXT = "korbert made this folder and removes it, with everything in it, once the work is done.\n"


def claim(
    folder: Path,
    known: Callable[[str], bool] = lambda name: True,
    *,
    is_whole: Callable[[Path], bool] = lambda path: False,
) -> Path:
    """Makes a folder for unfinished work, or continues in a marked one. Returns it.

    known: whether a file of this name is one of ours, for folders that hold only files; by default any file is, once
    the folder is marked. is_whole: whether a file proves by its content that it is ours: a folder of such files, which
    an earlier version made, needs no mark. ArtifactError for a link, a file, and a folder with files of somebody else.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ArtifactError("{folder}: is not a folder of korbert: move it away, or name another output", folder=folder)
    names = sorted(path.name for path in folder.iterdir() if not is_litter(path.name)) if folder.is_dir() else []
    marked = is_marked(folder)
    foreign = [name for name in names if not marked or not (name == MARK or is_aside(name) or known(name))]
    if not marked and all(is_whole(folder / name) for name in names):
        foreign = []
    if foreign:
        raise ArtifactError(
            "{folder}: holds {foreign}, not korbert's: move it away, or name another output",
            folder=folder,
            foreign=foreign[0],
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not marked:
        (folder / MARK).write_text(_TEXT, encoding="utf-8")
    return folder


def is_marked(folder: Path) -> bool:
    """Whether a folder has the mark. A link to one has not."""
    mark = folder / MARK
    return not folder.is_symlink() and mark.is_file() and mark.read_bytes() == _TEXT.encode()


def remove(folder: Path, is_ours: Callable[[Path], bool] = is_marked) -> None:
    """Removes a folder with everything in it; does nothing if there is none.

    is_ours: how the folder is recognized. ArtifactError if it is not ours: then nothing is removed.
    """
    if folder.is_symlink() or folder.exists():
        if folder.is_symlink() or not folder.is_dir() or not is_ours(folder):
            raise ArtifactError(
                "{folder}: is not a folder of korbert, so it is not removed: move it away", folder=folder
            )
        shutil.rmtree(folder)


def unlisted_paths(folder: Path, is_listed: Callable[[str], bool]) -> list[Path]:
    """What a folder holds that a record does not list, in order: other files, and everything that is no regular file.

    is_listed: takes a name relative to the folder. Empty folders do not count, and links are not followed.
    """
    unlisted = []
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        for path in (Path(place, name) for name in (*files, *links)):
            if path.is_symlink() or not path.is_file() or not is_listed(path.relative_to(folder).as_posix()):
                unlisted.append(path)
    return sorted(unlisted)


def remove_listed(folder: Path, is_listed: Callable[[str], bool]) -> None:
    """Removes the files of a folder that its record lists, and the folders that are then empty. Logs what stays.

    is_listed: as of `unlisted_paths`. Does nothing if there is no folder.
    """
    unlisted = set(unlisted_paths(folder, is_listed))
    for place, _, files in os.walk(folder, topdown=False):
        for path in (Path(place, name) for name in files):
            if path not in unlisted:
                path.unlink()
        if holds_nothing(Path(place)):
            Path(place).rmdir()
    if unlisted:
        _logger.warning(
            "%s: stays, since it holds %s, which korbert did not make", folder, min(unlisted).relative_to(folder)
        )


def holds_nothing(folder: Path) -> bool:
    """Whether a folder holds nothing."""
    return not any(folder.iterdir())


def check_folder(folder: Path, *inputs: object, may_overwrite: Callable[[Path], bool] = holds_nothing) -> Path:
    """Refuses a folder that could not be written, before the work for it begins. Returns the nearest one that is there.

    inputs: as of check_output. may_overwrite: whether a folder that is there gives way; by default an empty one. Raises
    SettingsError for another one, a link, a file, a place that cannot be written to, and one in a folder that is read.
    """
    if not folder.name:
        raise SettingsError("{folder!r}: is not the name of a folder: name a new one", folder=str(folder))
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or not may_overwrite(folder)):
        raise SettingsError("{folder}: already exists: name a new folder", folder=folder)
    check_outside(folder, *inputs)
    nearest = next(path for path in folder.absolute().parents if path.exists())
    if not nearest.is_dir() or not may_write(nearest, os.W_OK | os.X_OK):
        raise SettingsError(
            "{folder}: cannot be made ({nearest} is not a writable folder): name another one",
            folder=folder,
            nearest=nearest,
        )
    return nearest


@contextmanager
def new_folder(folder: Path, *inputs: object, may_overwrite: Callable[[Path], bool] = holds_nothing) -> Iterator[Path]:
    """A folder to write that becomes `folder` at the end: whole, or absent after an error.

    inputs, may_overwrite, SettingsError: as of check_folder, which looks again before the folder gives way.
    """
    with TemporaryDirectory(
        prefix=".korbert-", dir=check_folder(folder, *inputs, may_overwrite=may_overwrite)
    ) as aside:
        new = claim(Path(aside)) / "new"
        old = Path(aside, "old")
        new.mkdir()
        yield new
        for path in filter(Path.is_file, new.rglob("*")):
            sync(path)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(folder):
            check_folder(folder, may_overwrite=may_overwrite)  # somebody may have put a file there meanwhile
            folder.rename(old)
        try:
            new.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise
