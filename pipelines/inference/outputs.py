"""The only files that a command writes over: pages of korbert, which can be made again in seconds."""

from pathlib import Path

_GENERATOR = b'<meta name="generator" content="korbert">'  # in templates/base.html and look.html
_HEAD_BYTES = 1_000


def is_page(path: Path) -> bool:
    """Whether a file is a page of korbert."""
    with path.open("rb") as file:
        return _GENERATOR in file.read(_HEAD_BYTES)
