"""Finds the columns of a file for each role: named by the user, or else by their usual names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message, join_messages, reason
from korbert.names import BLANK, did_you_mean, nfc, same_name
from korbert.records import Cells, is_empty
from korbert.system import JsonObject
from korbert.tasks.files.cells import flag
from korbert.tasks.files.roles import Role

Given = Mapping[str, str | Sequence[str]]
"""Role -> its column, or its columns in order."""


def choose_columns(
    roles: Sequence[Role], present: Sequence[str], given: Given, file: str, cells: Cells | None = None
) -> dict[str, tuple[str, ...]]:
    """Maps each role to its columns; optional roles may be left out.

    given: the columns that the user named, which are taken as they are. Any other role gets one column, or several if
    it is a series or flags. present: the columns of the file. cells: the cells of its first records, which narrow the
    candidates as in `columns_of`. Raises CorpusError for a missing or duplicate column, for a role with no or several
    candidate columns, and for a column whose name is usual for two roles; SettingsError for a role in `given` that is
    not in `roles`.
    """
    columns_by_role: dict[str, tuple[str, ...]] = {}
    for name, columns in given.items():
        if name not in {role.name for role in roles}:
            role_names = ", ".join(role.name for role in roles)
            raise SettingsError(
                "{name!r} cannot be named for this kind of task, which has {known}", name=name, known=role_names
            )
        columns_by_role[name] = tuple(_find_column(column, name, present, file) for column in as_columns(columns))
    taken = {column for columns in columns_by_role.values() for column in columns}
    free = [column for column in present if column not in taken]
    for role in roles:
        if role.name not in columns_by_role and (columns := _usual(role, free, file, cells)):
            columns_by_role[role.name] = columns
    # Columns of 0 and 1 are taken last: what is left is named for labels.
    for role in roles:
        if role.required and role.name not in columns_by_role and role.flags:
            taken = {column for columns in columns_by_role.values() for column in columns}
            flags = flag_columns([column for column in free if column not in taken], cells or {})
            if len(flags) > 1:
                columns_by_role[role.name] = flags
    missing = [role for role in roles if role.required and role.name not in columns_by_role]
    if missing:
        what = " and ".join(f"{role.name} ({', '.join(role.names[:3])}, ...)" for role in missing)
        raise CorpusError(
            "{file}: no column for {what} among {listed}: say which one it is, or if the first line names "
            "no columns, add a line that does",
            file=file,
            what=what,
            listed=column_names(present),
        )
    holder: dict[str, str] = {}  # the role that a column was found for
    for name, columns in columns_by_role.items():
        for column in columns if name not in given else ():
            if column in holder:
                raise CorpusError(
                    "{file}: column {column!r} may hold {holder} or {role} (of {listed}): say which column holds which",
                    file=file,
                    column=column,
                    holder=holder[column],
                    role=name,
                    listed=column_names(present),
                )
            holder[column] = name
    return {role.name: columns_by_role[role.name] for role in roles if role.name in columns_by_role}


def as_columns(names: str | Sequence[str]) -> tuple[str, ...]:
    """The columns of a role as the user gives them: one, or several in order."""
    return (names,) if isinstance(names, str) else tuple(names)


def columns_of(role: Role, present: Iterable[str], cells: Cells | None = None) -> tuple[str, ...]:
    """The columns that may hold the role; several if ambiguous.

    Without `cells`, these are the columns with a usual name. With `cells`, they are the first of these groups that is
    not empty: columns with a usual name and a value of the role; with a usual name and no cell; with a name in
    `role.alike` and a value of the role; for a required role, all with a usual name.
    """
    present = tuple(present)
    named = tuple(column for column in present if _plain(column) in map(_plain, role.names))
    if cells is None:
        return named
    # First columns with a value of the role, then columns without cells, then columns of other names with such a value.
    fitting = tuple(column for column in named if _fits(role, cells.get(column, ())))
    if fitting := fitting or tuple(column for column in named if not cells.get(column)):
        return fitting
    other_names = tuple(
        column for column in present if _plain(column) in role.alike and _fits(role, cells.get(column, ()))
    )
    return other_names or (named if role.required else ())


@lru_cache(1_000)
def column_for(names: tuple[str, ...], present: tuple[str, ...]) -> str | None:
    """The column with the first of these names that is present."""
    for name in names:
        if name in present:
            return name
        if columns := columns_of(Role("", (name,)), present):
            return columns[0]
    return None


def row_of(fields: Mapping[str, object], roles: Iterable[Role], series: Given | None = None) -> JsonObject:
    """Returns role -> value for a record to predict for, from a file or from a caller.

    roles: each with the names of its column, the preferred name first. series: the columns that hold a role as a list,
    if all are present. An optional role without a column, or with an empty cell, is left out.
    Raises ValueError for a role without a column of its own, and for a cell that is no value of its role.
    """
    row: JsonObject = {}
    holders: dict[str, str] = {}
    for role in roles:
        column = column_for(role.names, tuple(fields))
        if not role.required and (column is None or is_empty(fields[column])):
            continue
        names = " or ".join(dict.fromkeys((role.names[0], role.name)))
        if column is None:
            present = ", ".join(fields) or Message("none")
            raise ValueError(Message("no column {names} among {present}", names=names, present=present))
        if column in holders:
            raise ValueError(Message("no column {names} but for {role}", names=names, role=holders[column]))
        holders[column] = role.name
        cell = fields[column]
        parts = (series or {}).get(role.name, ())
        if len(parts) > 1 and fields.keys() >= set(parts):
            cell = [fields[part] for part in parts]
        try:
            row[role.name] = role.value(cell)
        except ValueError as error:
            raise ValueError(Message("{column!r} {fault}", column=column, fault=reason(error))) from None
    return row


def flag_columns(present: Iterable[str], cells: Cells) -> tuple[str, ...]:
    """The columns that hold 0 and 1, or truth values, and nothing else."""
    return tuple(column for column in present if cells.get(column) and None not in map(flag, cells[column]))


def _fits(role: Role, cells: Iterable[object]) -> bool:
    """Whether one of the cells is a value of the role, other than an empty list or object."""
    for cell in cells:
        with suppress(ValueError):
            value = role.value(cell)
            if not isinstance(value, list | dict) or value:
                return True
    return False


def _usual(role: Role, free: Sequence[str], file: str, cells: Cells | None) -> tuple[str, ...]:
    candidates = columns_of(role, free, cells)
    if len(candidates) > 1:
        raise CorpusError(
            "{file}: column {candidates} may hold {role}: say which one it is",
            file=file,
            candidates=" or ".join(map(repr, candidates)),
            role=role.name,
        )
    if candidates:
        return candidates
    # choice1, choice2, ... in order, without gaps, from 0 or 1; at least two.
    for beginning in role.series:
        pattern = re.compile(re.escape(_plain(beginning)) + r"_?([0-9]{1,2})")
        numbered = {int(match[1]): column for column in free if (match := pattern.fullmatch(_plain(column)))}
        first = min(numbered, default=-1)
        if first in (0, 1) and len(numbered) > 1 and sorted(numbered) == [*range(first, first + len(numbered))]:
            return tuple(numbered[number] for number in sorted(numbered))
    return ()


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", nfc(name).strip(BLANK)).casefold()


def _find_column(column: str, role_name: str, present: Sequence[str], file: str) -> str:
    """The column of that name, which may be spelled in another normal form (macOS writes NFD).

    CorpusError if there is none, or several.
    """
    matches = [name for name in present if same_name(name, column)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise CorpusError(
            "{file}: {num_alike} columns are called {column!r}, the one for {role}: give them names of their own",
            file=file,
            num_alike=len(matches),
            column=column,
            role=role_name,
        )
    hint = did_you_mean(column, filter(None, present), 0.3) or Message("name one of these")
    raise CorpusError(
        "{file}: no column {column!r} for {role} among {listed}: {hint}",
        file=file,
        column=column,
        role=role_name,
        listed=column_names(present),
        hint=hint,
    )


def columns_summary(columns: Mapping[str, Sequence[str]]) -> Message:
    """Which columns each role is read from."""
    roles = [
        Message("{role} from {columns}", role=role, columns=", ".join(map(repr, names)))
        for role, names in columns.items()
    ]
    return join_messages(roles, ", ")


def column_names(columns: Sequence[str]) -> str:
    """Column names for messages, with undecodable characters escaped."""
    names = ", ".join(column or "(no name)" for column in columns) or "none"
    return names.encode("utf-8", "backslashreplace").decode()
