"""Finds and reads the files of a known set, with substitutes for missing parts.

| there | train | valid | test |
|---|---|---|---|
| all parts | train | valid | test |
| train and test | train | none: the caller takes a share of train | test |
| train and valid | train | none | valid, with a note |
| valid and test | four fifths of valid | one fifth of valid | test, with a note |
| valid alone | three fifths of valid | one fifth | one fifth, with a note |
| anything else | refused, naming what is missing and where to get it | | |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.tasks.files import ROLES, Role, TaskRow, TaskRows, read_rows, rename_labels
from korbert.tasks.sets.table import PARTS, Files, KnownSet, SplitName, known_set
from korbert.tasks.splits import hash_bucket, subset


@dataclass(frozen=True)
class KnownParts:
    """The rows of a known set. notes: caveats to report with scores on them. labels: names of labels of its files."""

    train: TaskRows
    valid: TaskRows | None
    test: TaskRows
    notes: tuple[Message, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True)
class _FoundFiles:
    """Files of a set in one folder: part -> its files that exist; parts without any are left out."""

    files: Files
    folder: Path
    paths: Mapping[SplitName, tuple[Path, ...]]

    def absent(self, part: SplitName) -> str:
        """Names of a part's missing files, for messages; empty if there are none."""
        names = {path.name for path in self.paths.get(part, ())}
        return " and ".join(name for name in self.files.parts.get(part, ()) if name not in names)


def load(name: str, data: Path) -> KnownParts:
    """Loads a known set from its files below the folder `data` (see the tables of this package).

    Raises SettingsError for an unknown set; CorpusError for missing files, with where to get them, and for files that
    `read_rows` refuses. Unusable records are counted in `dropped` of their part, or in that of train if it was split.
    """
    known = known_set(name)
    found = _find_files(known, data)
    files = found.files
    roles = [_role(role, names, files.labels) for role, names in files.columns.items()]
    rows = {
        part: read_rows(paths, roles, form=files.form, columns=files.columns) for part, paths in found.paths.items()
    }
    notes = [Message(files.note)] if files.note else []
    for part in found.paths:
        if absent := found.absent(part):
            notes.append(
                Message("{part} is without {files}: not comparable with published scores", part=part, files=absent)
            )
    if "train" not in rows:
        return _cut(known, found, rows, notes)
    if "test" in rows:
        if absent := found.absent("valid"):
            notes.append(Message("without {files}, choices are made on a share of train", files=absent))
        return KnownParts(rows["train"], rows.get("valid"), rows["test"], tuple(notes), files.labels)
    dev = " and ".join(files.parts["valid"])
    note = Message(
        "no labelled test set is published: {dev} is the test set, choices are made on a share of train", dev=dev
    )
    if absent := found.absent("test"):
        note = Message(
            "without {files}, {dev} is the test set: not comparable with published scores", files=absent, dev=dev
        )
    return KnownParts(rows["train"], None, rows["valid"], (*notes, note), files.labels)


def files_at_hand(known: KnownSet, data: Path) -> dict[SplitName, tuple[Path, ...]]:
    """Part -> the files below the folder `data` that `load` reads; a part without any is left out.

    CorpusError if there is no such folder, or too little in it for `load`.
    """
    return dict(_find_files(known, data).paths)


def part_of(row: TaskRow) -> SplitName:
    """The part of a row when a file is split, by the hash_bucket of its first text: 0: valid, 1: test, 2 to 4: train.

    Rows that share a text (the premise of several hypotheses, the context of several questions) fall into one part.
    """
    parts: tuple[SplitName, ...] = ("valid", "test", "train", "train", "train")
    return parts[hash_bucket(" ".join(row.get("tokens") or ()) or row.get("text") or row["context"])]


def _cut(
    known: KnownSet, found: _FoundFiles, rows: Mapping[SplitName, TaskRows], notes: Sequence[Message]
) -> KnownParts:
    """Splits the dev set into train and valid, and test if there is none."""
    dev = rows["valid"]
    test = rows.get("test")
    indices_of: dict[SplitName, list[int]] = {part: [] for part in PARTS}
    for index, row in enumerate(dev):
        part = part_of(row)
        indices_of["train" if test is not None and part == "test" else part].append(index)
    new_parts = {part: subset(dev, indices) for part, indices in indices_of.items() if part != "test" or test is None}
    sizes = ", ".join(f"{len(rows):,} {part}" for part, rows in new_parts.items())
    names = " and ".join(found.files.parts["valid"])
    if not all(map(len, new_parts.values())):
        raise CorpusError(
            "{file}: {rows} rows are too few to be cut ({sizes}): {remedy}",
            file=found.folder / names, rows=len(dev), sizes=sizes, remedy=_remedy(known),
        )  # fmt: skip
    new_parts["train"].dropped = dev.dropped  # once, for all parts
    note = Message(
        "without {files}, {dev} is cut by hash ({sizes}): not comparable with published scores",
        files=found.absent("train"), dev=names, sizes=sizes,
    )  # fmt: skip
    parts = {**rows, **new_parts}
    return KnownParts(parts["train"], parts["valid"], parts["test"], (*notes, note), found.files.labels)


def _role(name: str, columns: str | list[str], labels: Mapping[str, str]) -> Role:
    """The role of a set. The texts of several columns are joined to one; labels are renamed, and no others allowed."""
    role = ROLES[name]
    if name == "text" and not isinstance(columns, str):
        return replace(role, value=lambda cells: " ".join(role.value(cell).strip() for cell in cells))
    return rename_labels(role, labels, strict=True) if name == "label" else role


def _find_files(known: KnownSet, data: Path) -> _FoundFiles:
    """The existing files of a set: prefers a training part, then the most files, then the first candidate.

    CorpusError if they are too few for `load`.
    """
    if not data.is_dir():
        raise CorpusError(
            "{data}: no such folder: give the one that holds the files of {known}", data=data, known=known.name
        )
    candidates = []
    for files in known.files:
        # Each usual folder, also below `tasks`, then the same with fewer parents, and finally `data` itself.
        parts = [usual.split("/") for usual in files.folders]
        inner = ["/".join(levels[first:]) for levels in parts for first in range(len(levels))]
        for folder in (*(data / above / name for name in inner for above in ("tasks", "")), data):
            paths = {
                part: tuple(path for name in names if (path := folder / name).is_file())
                for part, names in files.parts.items()
            }
            candidates.append(
                _FoundFiles(files, folder, {part: existing for part, existing in paths.items() if existing})
            )
    found = max(candidates, key=lambda files: ("train" in files.paths, sum(map(len, files.paths.values()))))
    if "valid" not in found.paths and not {"train", "test"} <= found.paths.keys():
        names = [f"{absent} ({part})" for part in PARTS if (absent := found.absent(part))]
        where: object = found.folder
        if not found.paths:
            folders = ", ".join(found.files.folders)
            where = Message("{folder} and its folders {folders}", folder=str(data), folders=folders)
        raise CorpusError(
            "{known}: no {names} in {folder}: {remedy}",
            known=known.name, names=", ".join(names), folder=where, remedy=_remedy(known),
        )  # fmt: skip
    return found


def _remedy(known: KnownSet) -> Message:
    return Message("get the files from {url} ({licence})", url=known.url, licence=Message(known.licence))
