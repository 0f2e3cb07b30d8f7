"""Descriptions of data sets. Imports nothing heavy: `korbert --help` may read it.

The metrics of a set have the names that its kind knows (`korbert.tasks.kinds`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from korbert.records import Form

__all__ = ["PARTS", "Files", "KnownSet", "Part", "Published", "SetKind"]

SetKind = Literal["classification", "regression", "tagging", "choice", "reading"]
Part = Literal["train", "valid", "test"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True)
class Files:
    """The files of a set as distributed in one place.

    folders: where they usually are below the data folder. parts: part -> names of its files, if it has labels.
    columns: role -> its column, or its columns in order; these roles are read. form: see `read_rows`.
    change: converts a row as read to a row of the set's kind, or raises ValueError, which drops the row.
    note: a caveat to report with scores on these files.
    """

    folders: tuple[str, ...]
    parts: Mapping[Part, tuple[str, ...]]
    columns: Mapping[str, str | tuple[str, ...]]
    form: "Form" = "auto"
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    note: str = ""


@dataclass(frozen=True)
class Published:
    """The best score, in percent, reported for a model of base size (12 layers, hidden size 768).

    It uses the set's first metric. on: the part, "" if the source does not say.
    """

    score: float
    model: str
    on: str
    source: str

    def __str__(self) -> str:
        return f"{self.score:.2f} ({self.model}{f', {self.on}' if self.on else ''}; {self.source})"


@dataclass(frozen=True)
class KnownSet:
    """A public data set.

    about: the task, in a few words. metrics: names of its scores, the published one first. url: where to get it.
    size: part -> rows as distributed; a part without published labels is left out. best: None if unknown. files: in
    order of preference; none if the set has its own reader. uncounted: the label that the published F1 leaves out.
    """

    name: str
    title: str
    kind: SetKind
    about: str
    metrics: tuple[str, ...]
    url: str
    licence: str
    size: Mapping[Part, int]
    best: Published | None = None
    files: tuple[Files, ...] = field(default=(), repr=False)
    uncounted: str = ""
