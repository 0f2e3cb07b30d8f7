"""Finds the columns of a file for each role: named by the user, or else by their usual names."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from korbert.errors import CorpusError, SettingsError
from korbert.tasks.files.roles import Role

__all__ = ["Given", "choose_columns", "columns_of"]

Given = Mapping[str, str | Sequence[str]]
"""Role -> its column, or its columns in order."""


def choose_columns(
    roles: Sequence[Role], present: Sequence[str], given: Given, file: str
) -> dict[str, tuple[str, ...]]:
    """Role -> its columns, one unless they are a series. Optional roles may be left out.

    present: the columns of the file. Raises CorpusError, which lists them, for a missing or duplicate column, for a
    role with no or several candidate columns, and for a column whose name is usual for two roles; SettingsError for a
    role in `given` that is not in `roles`.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    for name, columns in given.items():
        if name not in {role.name for role in roles}:
            raise SettingsError(f"no role {name!r} among {', '.join(role.name for role in roles)}")
        chosen[name] = (columns,) if isinstance(columns, str) else tuple(columns)
        for column in chosen[name]:
            _refuse_absent(column, name, present, file)
    taken = {column for columns in chosen.values() for column in columns}
    free = [column for column in present if column not in taken]
    for role in roles:
        if role.name not in chosen and (columns := _usual(role, free, file)):
            chosen[role.name] = columns
    missing = [role for role in roles if role.required and role.name not in chosen]
    if missing:
        what = " and ".join(f"{role.name} ({', '.join(role.names[:3])}, ...)" for role in missing)
        raise CorpusError(
            f"{file}: no column for {what} among {_listed(present)}: say which one it is, or if the first line names"
            " no columns, add a line that does"
        )
    _refuse_shared(chosen, given, present, file)
    return {role.name: chosen[role.name] for role in roles if role.name in chosen}


def columns_of(role: Role, present: Iterable[str]) -> tuple[str, ...]:
    """The columns with a usual name of the role; several if ambiguous."""
    names = {_plain(name) for name in role.names}
    return tuple(column for column in present if _plain(column) in names)


def _usual(role: Role, free: Sequence[str], file: str) -> tuple[str, ...]:
    found = columns_of(role, free)
    if len(found) > 1:
        raise CorpusError(f"{file}: column {' or '.join(map(repr, found))} may hold {role.name}: say which one it is")
    return found or next(filter(None, (_series(beginning, free) for beginning in role.series)), ())


def _series(beginning: str, free: Sequence[str]) -> tuple[str, ...]:
    """choice1, choice2, ... in order, without gaps, from 0 or 1; at least two."""
    pattern = re.compile(re.escape(_plain(beginning)) + r"_?([0-9]{1,2})")
    found = {int(match[1]): column for column in free if (match := pattern.fullmatch(_plain(column)))}
    first = min(found, default=-1)
    whole = first in (0, 1) and len(found) > 1 and sorted(found) == list(range(first, first + len(found)))
    return tuple(found[number] for number in sorted(found)) if whole else ()


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip()).casefold()


def _refuse_absent(column: str, role: str, present: Sequence[str], file: str) -> None:
    if (count := present.count(column)) == 1:
        return
    if count:
        raise CorpusError(
            f"{file}: {count} columns are called {column!r}, the one for {role}: give them names of their own"
        )
    near = difflib.get_close_matches(column, [name for name in present if name], 1, 0.3)
    hint = f": did you mean {near[0]!r}?" if near else ": name one of these"
    raise CorpusError(f"{file}: no column {column!r} for {role} among {_listed(present)}{hint}")


def _refuse_shared(chosen: Mapping[str, tuple[str, ...]], given: Given, present: Sequence[str], file: str) -> None:
    """CorpusError if two roles that the user did not name were matched to the same column."""
    holder: dict[str, str] = {}
    for role, columns in chosen.items():
        for column in columns if role not in given else ():
            if column in holder:
                raise CorpusError(
                    f"{file}: column {column!r} may hold {holder[column]} or {role} (of {_listed(present)}): say"
                    " which column holds which"
                )
            holder[column] = role


def _listed(columns: Sequence[str]) -> str:
    """Column names for messages, with undecodable characters escaped."""
    names = ", ".join(column or "(no name)" for column in columns) or "none"
    return names.encode("utf-8", "backslashreplace").decode()
