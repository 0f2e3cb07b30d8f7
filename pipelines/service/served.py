"""Models under their names, and the index of /similar."""

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
    """An index to search for similar texts; korbert.vectors.Index is one."""

    def search(self, texts: Sequence[str], top: int = 10, way: Any = "both") -> Sequence[Sequence[Hit]]:
        """The `top` hits for each text, the best first."""


@dataclass(frozen=True)
class Served:
    """A model with its name in requests. kind: that of config.json."""

    name: str
    kind: str
    model: Any
    operations: Mapping[str, Operation]


def named(given: Sequence[str]) -> dict[str, Path]:
    """NAME=FOLDER, or a folder, whose last part is the name (of FOLDER/model the part before). Each name once.

    SettingsError for a name with other characters than letters, digits, ".", "-" and "_", and for one given twice.
    """
    found: dict[str, Path] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        path = Path(folder if equals else one)
        if not equals:
            last = path.absolute()
            name = last.parent.name if last.name == "model" else last.name
        if not _NAME.fullmatch(name):
            raise SettingsError(f"{one}: {name!r} cannot be a model's name: give it one, as in mood={path}")
        if name in found:
            raise SettingsError(f"{one}: {found[name]} is named {name}, too: give one another name, as in b={path}")
        found[name] = path
    return found
