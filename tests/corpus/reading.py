from collections.abc import Sequence
from pathlib import Path
from typing import Any

from korbert.corpus.corpus_settings import SourceSettings
from korbert.corpus.readers import SourceRow, chunks, rows


def put(folder: Path, name: str, content: str | bytes, encoding: str = "utf-8") -> Path:
    path = folder / name
    if isinstance(content, str):
        content = content.encode(encoding)
    path.write_bytes(content)
    return path


def read(files: Path | Sequence[Path], part_bytes: int = 1 << 20, **source: Any) -> list[SourceRow]:
    """All rows of a file or of files, cut into chunks of about `part_bytes`."""
    settings = SourceSettings(name="s", path="x", **source)
    files = [files] if isinstance(files, Path) else files
    return [row for chunk in chunks(settings, files, part_bytes) for row in rows(chunk)]
