"""Files that are whole or absent, whatever moment a run is cut off."""

import os
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, data: bytes | memoryview) -> None:
    """Written aside, synced, renamed: a reader sees the old file or the new one. Its folder is made if absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".tmp")
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
