"""What is served: models under names, and texts to search."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from korbert.errors import SettingsError
from korbert.vectors.ranking import Hit
from pipelines.service.batching import Operation

__all__ = ["Searcher", "Served", "named"]

_NAME = re.compile(r"[\w.-]+")


class Searcher(Protocol):
    """Texts that are searched for similar ones; korbert.vectors.Index is one."""

    def search(self, texts: Sequence[str], top: int = 10, way: Any = "both") -> Sequence[Sequence[Hit]]:
        """The `top` hits for each text, the best first."""


@dataclass(frozen=True)
class Served:
    """A model under the name that requests call it by. kind: as config.json has it."""

    name: str
    kind: str
    model: Any
    operations: Mapping[str, Operation]


def named(given: Sequence[str]) -> dict[str, Path]:
    """NAME=FOLDER, or a folder: its last part is the name, or that above model/. SettingsError for two of one name."""
    found: dict[str, Path] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        path = Path(folder if equals else one)
        if not equals:
            last = path.absolute()
            name = last.parent.name if last.name == "model" else last.name
        if not _NAME.fullmatch(name):
            raise SettingsError(f"{one}: {name!r} is no name for a model: give it one, as in mood={path}")
        if name in found:
            raise SettingsError(f"{one}: {found[name]} is called {name}, too: give one another name, as in b={path}")
        found[name] = path
    return found
