"""Models by name, and the index of /similar."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from korbert.errors import SettingsError
from korbert.search import Hit
from pipelines.service.batching import Operation

__all__ = ["Searcher", "Served", "named"]

_NAME = re.compile(r"[\w.-]+")


class Searcher(Protocol):
    """An index to search for similar texts; korbert.search.Index is one."""

    def search(self, texts: Sequence[str], top: int = 10, way: Any = None) -> Sequence[Sequence[Hit]]:
        """The `top` hits for each text, the best first."""


@dataclass(frozen=True)
class Served:
    """A model with its name in requests. kind: that of config.json."""

    name: str
    kind: str
    model: Any
    operations: Mapping[str, Operation]


def named(given: Sequence[str]) -> dict[str, Path]:
    """Parses NAME=FOLDER, or a folder named by its last part (for FOLDER/model, the part before).

    Raises SettingsError for a name with other characters than letters, digits, ".", "-" and "_", or given twice.
    """
    folders: dict[str, Path] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        path = Path(folder if equals else one)
        if not equals:
            last = path.absolute()
            name = last.parent.name if last.name == "model" else last.name
        if not _NAME.fullmatch(name):
            raise SettingsError(f"{one}: {name!r} cannot name a model: give it a name, as in mood={one}")
        if name in folders:
            raise SettingsError(f"{one}: {folders[name]} is named {name}, too: rename one, as in b={path}")
        folders[name] = path
    return folders
