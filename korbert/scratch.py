"""Folders that korbert makes and removes: the only place that removes a folder.

A command removes what it made in this run or what is marked as its own, never a folder by its name. `claim` makes a
folder for unfinished work, with a mark inside; `remove` removes it. Folders with a record of their own (artifacts,
checkpoints, rankers) are told by that record.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from korbert.errors import ArtifactError
from korbert.names import is_litter

MARK = ".korbert"
_TEXT = "korbert made this folder and removes it, with everything in it, once the work is done.\n"


def claim(folder: Path, known: Callable[[str], bool] | None = None) -> Path:
    """Makes a folder for unfinished work, or continues in a marked one. Returns it.

    known: whether a file of this name is one of ours, for folders that hold only files; None: any file is, once the
    folder is marked. ArtifactError for a link, a file, and a folder with files of somebody else.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ArtifactError(f"{folder}: is not a folder of korbert: move it away, or name another output")
    names = sorted(path.name for path in folder.iterdir() if not is_litter(path.name)) if folder.is_dir() else []
    marked = is_marked(folder)
    foreign = [name for name in names if not marked or (name != MARK and known is not None and not known(name))]
    if foreign:
        raise ArtifactError(f"{folder}: holds {foreign[0]}, not korbert's: move it away, or name another output")
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
            raise ArtifactError(f"{folder}: is not a folder of korbert, so it is not removed: move it away")
        shutil.rmtree(folder)
