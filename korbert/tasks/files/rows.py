"""Rows of labelled files: a value per role, the place of each row, and what was dropped and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from korbert.errors import CorpusError
from korbert.messages import Message, join_messages, reason
from korbert.records import Cells, Fault, Form, Table, is_empty, open_table, tables_of
from korbert.tasks.files import cells
from korbert.tasks.files.columns import Given, as_columns, choose_columns, columns_summary, flag_columns
from korbert.tasks.files.roles import Role

TaskRow: TypeAlias = dict[str, Any]
"""Role -> value; None if an optional role has no column or an empty cell."""

_PLACES_SHOWN = 3
_LABELS_SHOWN = 5


class Place(NamedTuple):
    """Where a row begins. unit: "line", "row" or "record"; number: from 1."""

    file: str
    unit: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.number}"


@dataclass(frozen=True)
class SourceFile:
    """A file that was read: format and encoding, role -> columns used, and number of rows."""

    file: str
    form: str
    encoding: str
    columns: Mapping[str, tuple[str, ...]]
    rows: int

    def summary(self) -> Message:
        """The file, its format and its columns in a line."""
        format_name: str = self.form
        if self.encoding:
            format_name = Message("{form} in {encoding}", form=self.form, encoding=self.encoding.upper())
        return Message(
            "{file}: {rows:,} rows ({how}; {roles})",
            file=self.file, rows=self.rows, how=format_name, roles=columns_summary(self.columns),
        )  # fmt: skip


@dataclass
class Dropped:
    """Records dropped for one reason. first: places and details of the first three."""

    count: int = 0
    first: list[Message] = field(default_factory=list)


@dataclass
class TaskRows:
    """Rows in file order, with their places, and how they were read.

    dropped: reason -> dropped records. notes: further remarks for the user.
    """

    rows: list[TaskRow] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    sources: list[SourceFile] = field(default_factory=list)
    dropped: dict[str, Dropped] = field(default_factory=dict)
    notes: list[Message] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[TaskRow]:
        return iter(self.rows)

    @property
    def files(self) -> str:
        """The names of the files, for error messages."""
        return ", ".join(source.file for source in self.sources) or "training rows"

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Role -> columns used, from the first file that has the role."""
        return {role: columns for source in reversed(self.sources) for role, columns in source.columns.items()}

    def summary(self) -> list[Message]:
        """Summary lines: the files, what was dropped with the first places, and notes."""
        lines = [source.summary() for source in self.sources]
        for why, dropped in self.dropped.items():
            places = join_messages([*dropped.first, *(["..."] if dropped.count > _PLACES_SHOWN else [])])
            lines.append(
                Message("dropped {count:,} as {reason}: {places}", count=dropped.count, reason=why, places=places)
            )
        return lines + self.notes

    def drop(self, place: Place, fault: Fault) -> None:
        dropped = self.dropped.setdefault(fault.reason, Dropped())
        dropped.count += 1
        if len(dropped.first) < _PLACES_SHOWN:
            dropped.first.append(Message("{place}: {fault}", place=str(place), fault=fault.what))


def read_rows(
    paths: str | Path | Sequence[str | Path],
    roles: Sequence[Role],
    *,
    form: Form = "auto",
    columns: Given | None = None,
    trained: Given | None = None,
) -> TaskRows:
    """Reads labelled files, in order. For what is dropped or refused, see docs/formats.md.

    form: of all files; "auto": by extension, or else content. columns: role -> its column, or several in order; other
    roles are found by their usual names, per file. trained: role -> its columns in the training file; in a file
    that has these columns, they hold the role, too.
    Raises CorpusError with file, line, what is there, and what to do; SettingsError for an unknown form and for a role
    in `columns` that is not in `roles`.
    """
    result = TaskRows()
    role_names = {role.name for role in roles}
    user_columns = {role: as_columns(names) for role, names in (columns or {}).items()}
    taken = {column for names in user_columns.values() for column in names}
    trained_columns = {column for names in (trained or {}).values() for column in names}
    # A single path: an address of fsspec has a suffix, but is not a Path.
    path_list: Any = [paths] if isinstance(paths, str) or hasattr(paths, "suffix") else paths
    for path, files in tables_of(Path(path) if isinstance(path, str) else path for path in path_list).items():
        table = open_table(path, form, (taken | trained_columns).issubset, files)
        free = set(table.columns) - taken
        inherited = {
            role: names for role, names in (trained or {}).items() if role in role_names and free.issuperset(names)
        }
        _read_table(result, table, str(path), roles, {**inherited, **user_columns})
    if not result.rows:
        raise CorpusError(
            "no row can be used: {said}", said=join_messages(result.summary()) or Message("no file given")
        )
    for role in roles:
        if role.unique:
            _settle_repeated(result, role.name, is_given=role.name in user_columns)
    return result


def _read_table(result: TaskRows, table: Table, file: str, roles: Sequence[Role], columns: Given) -> None:
    """Adds the rows of a file."""
    chosen = choose_columns(roles, table.columns, columns, table.place(file), table.first)
    first_row = len(result)
    is_dropped = False
    reading = _Reading(roles, chosen, table.first)
    for number, record in table.read(reading.wanted):
        place = Place(file, table.unit, number)
        try:
            row = record if isinstance(record, Fault) else reading.row(record)
        except cells.Unclear as error:
            raise CorpusError("{place}: {error}", place=place, error=reason(error)) from error
        if isinstance(row, Fault):
            result.drop(place, row)
            is_dropped = True
        else:
            result.rows.append(row)
            result.places.append(place)
    rows = result.rows[first_row:]
    for role in roles:
        if role.settle and role.name in chosen:
            try:
                values = role.settle([row.get(role.name) for row in rows])
            except ValueError as error:
                shown = _display(chosen[role.name])
                raise CorpusError("{file}: {shown}: {error}", file=file, shown=shown, error=reason(error)) from error
            for row, value in zip(rows, values, strict=True):
                row[role.name] = value
    result.notes += [Message("{file}: {note}", file=file, note=note) for note in table.notes]
    for remark, count in reading.remarks.items():
        result.notes.append(Message("{file}: {count:,} rows {remark}", file=file, count=count, remark=remark))
    if not rows and not is_dropped:
        raise CorpusError("{file}: holds no row: give a file with rows", file=file)
    result.sources.append(SourceFile(file, table.form, table.encoding, chosen, len(rows)))


class _Reading:
    """Parses the cells of a record into a row."""

    def __init__(self, roles: Sequence[Role], chosen: Mapping[str, tuple[str, ...]], first: Cells) -> None:
        self.wanted = list(dict.fromkeys(column for columns in chosen.values() for column in columns))
        self.remarks: Counter[str] = Counter()
        self._names = [role.name for role in roles]
        self._roles = [(role, chosen[role.name]) for role in roles if role.name in chosen]
        several = [(role, columns) for role, columns in self._roles if role.flags and len(columns) > 1]
        self._flags = {role.name for role, columns in several if flag_columns(columns, first) == columns}

    def row(self, record: Sequence[object]) -> TaskRow | Fault:
        row: TaskRow = dict.fromkeys(self._names)
        cell_of_column = dict(zip(self.wanted, record, strict=True))
        for role, columns in self._roles:
            role_cells = [cell_of_column[column] for column in columns]
            filled_cells = [cell for cell in role_cells if not is_empty(cell)]
            if not filled_cells:
                if role.required and role.empty is None:
                    return Fault(f"no_{role.name}", Message("{columns} is empty", columns=_display(columns)))
                row[role.name] = role.empty() if role.empty and role.required else None
                continue
            try:
                if role.name in self._flags:
                    row[role.name] = cells.flagged_names(columns, role_cells)
                elif len(columns) == 1:
                    row[role.name] = role.value(role_cells[0])
                elif role.flags:  # columns label1, label2 may have names, and some none
                    row[role.name] = role.value(filled_cells)
                else:
                    row[role.name] = role.value(role_cells)
            except ValueError as error:
                fault = Message("{columns} {fault}", columns=_display(columns), fault=reason(error))
                if isinstance(error, cells.Unclear):
                    raise cells.Unclear(fault) from error
                return Fault(f"bad_{role.name}", fault)
        for role, _ in self._roles:
            try:
                if role.complete and (remark := role.complete(row)):
                    self.remarks[remark] += 1
            except ValueError as error:
                return Fault(f"bad_{role.name}", reason(error))
        return row


def _display(columns: Iterable[str]) -> str:
    return " ".join(map(repr, columns))


def _settle_repeated(result: TaskRows, role: str, *, is_given: bool) -> None:
    """Refuses repeated values of a role if the user named its column; otherwise ignores it: it holds no ids."""
    seen: dict[Any, int] = {}
    for index, row in enumerate(result.rows):
        value = row[role]
        if value is not None and (first := seen.setdefault(value, index)) != index:
            what = Message(
                "{role} {value!r} is at {first} and at {second}",
                role=role, value=value, first=str(result.places[first]), second=str(result.places[index]),
            )  # fmt: skip
            if is_given:
                raise CorpusError("{what}: name a column without repetitions", what=what)
            columns = " ".join(result.columns[role])
            note = Message("{columns} is not taken as {role}: {what}", columns=columns, role=role, what=what)
            result.notes.append(note)
            for other in result.rows:
                other[role] = None
            return


def refuse_unseen_labels(rows: TaskRows, known: Iterable[str]) -> None:
    """Raises CorpusError for labels that are not among `known`, with the count and first place of each.

    rows: each with a label, or a list of labels.
    """
    names = set(known)
    unseen: dict[str, list[Place]] = {}
    for row, place in zip(rows, rows.places, strict=True):
        for label in row["label"] if isinstance(row["label"], list) else [row["label"]]:
            if label is not None and label not in names:
                unseen.setdefault(label, []).append(place)
    if unseen:
        most_frequent = sorted(unseen, key=lambda label: -len(unseen[label]))[:_LABELS_SHOWN]
        shown = [
            Message(
                "{label!r} {count:,} times, first at {place}",
                label=label, count=len(unseen[label]), place=str(unseen[label][0]),
            )
            for label in most_frequent
        ]  # fmt: skip
        if len(unseen) > _LABELS_SHOWN:
            shown.append(Message("and {count} more", count=len(unseen) - _LABELS_SHOWN))
        raise CorpusError(
            "labels not seen in training: {shown}: known are {known}: correct them or train again",
            shown=join_messages(shown),
            known=", ".join(sorted(names)[:20]),
        )
