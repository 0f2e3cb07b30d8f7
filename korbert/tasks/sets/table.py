"""The table of known data sets. Imports nothing heavy. Rows have the roles of the columns of their set."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from korbert.errors import SettingsError
from korbert.messages import Message, join_messages
from korbert.names import did_you_mean
from korbert.records import Form
from korbert.system import JsonObject

SplitName = Literal["train", "valid", "test"]
PARTS: tuple[SplitName, ...] = get_args(SplitName)


@dataclass(frozen=True)
class Files:
    """The files of a set as distributed in one place. parts: part -> names of its files. See datasets.toml."""

    folders: tuple[str, ...]
    parts: Mapping[SplitName, tuple[str, ...]]
    columns: Mapping[str, str | list[str]]
    form: Form
    labels: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class KnownSet:
    """A data set. Facts about a public one are "" or {} if unknown. See datasets.toml."""

    name: str
    title: str
    kind: str
    metrics: tuple[str, ...]
    files: tuple[Files, ...] = field(repr=False)
    about: str = ""
    url: str = ""
    licence: str = ""
    size: Mapping[SplitName, int] = field(default_factory=dict)
    best: str = ""
    uncounted: str = ""


def _build_set(name: str, table: JsonObject) -> KnownSet:
    files = []
    for entry in table.pop("files"):
        parts = {part: tuple(entry.pop(part)) for part in PARTS if part in entry}
        files.append(Files(tuple(entry.pop("folders")), parts, **entry))
    return KnownSet(name=name, metrics=tuple(table.pop("metrics")), files=tuple(files), **table)


SETS: Mapping[str, KnownSet] = {
    name: _build_set(name, table)
    for name, table in tomllib.loads(
        Path(__file__).parent.with_name("datasets.toml").read_text(encoding="utf-8")
    ).items()
}


def known_set(name: str) -> KnownSet:
    """Raises SettingsError for an unknown name, with the closest match."""
    if name not in SETS:
        hint = did_you_mean(name.lower().replace("_", "-"), SETS)
        hint = hint or Message("known are {names}", names=", ".join(SETS))
        raise SettingsError("no data set {name!r}: {hint}", name=name, hint=hint)
    return SETS[name]


def listing() -> list[dict[str, str]]:
    """One line per set: name, kind, about, rows (of train, valid and test), metric, best, licence, where.

    "-" marks a part without published labels and for an unknown best score.
    """
    return [
        {
            "name": known.name,
            "kind": known.kind,
            "about": join_messages([known.title, Message(known.about)], ": "),
            "rows": " / ".join(f"{known.size[part]:,}" if part in known.size else "-" for part in PARTS),
            "metric": known.metrics[0],
            "best": known.best or "-",
            "licence": Message(known.licence),
            "where": known.url,
        }
        for known in SETS.values()
    ]
