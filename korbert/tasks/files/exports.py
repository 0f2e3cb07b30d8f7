"""Files of the tools in which people label, as tables with our columns. docs/exports.md lists what is read of each.

A form is recognised by its keys, in `EXPORTS`; its records become fields with the usual names of roles. Forms that need
no change are not here: doccano's and spaCy's spans, Label Studio's CSV, CoNLL.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from korbert.errors import CorpusError
from korbert.records.form import Form
from korbert.records.forms import open_table
from korbert.records.jsons import cell_of, nested_columns
from korbert.records.table import Fault, Records, Table, open_text
from korbert.tasks.files.columns import Cells, Given, first_cells

__all__ = ["EXPORTS", "Export", "open_export", "tables_of"]

_Record: TypeAlias = Mapping[str, Any]

_LOOKED_AT = 1_000  # records whose fields become the columns


class _LeftOut(ValueError):
    """A record that is not to be learned from. reason: for counting."""

    def __init__(self, reason: str, what: str) -> None:
        super().__init__(what)
        self.reason = reason


@dataclass(frozen=True)
class Export:
    """The form of a tool.

    name: of the tool. keys: the columns by which it is known; `fields` replace them. fields: the rows of a record, each
    with fields of ours; other columns stay. marks: whether the first cells of the columns agree, too; each has some.
    """

    name: str
    keys: tuple[str, ...]
    fields: Callable[[_Record], Iterable[_Record]]
    marks: Callable[[Cells], bool] = lambda cells: True


def tables_of(paths: Iterable[Path]) -> dict[Path, tuple[Path, ...]]:
    """Path -> the files that are read as one table: a file by itself, all .ann files of brat as their folder.

    The texts and settings beside .ann files are left out.
    """
    given = list(paths)
    standoff = tuple(sorted(path for path in given if path.suffix == ".ann"))
    texts = {path.with_suffix(".txt") for path in standoff}
    together = {standoff[0].parent: standoff} if len(standoff) > 1 else dict.fromkeys(standoff, standoff)
    rest = [path for path in given if path not in texts and not (standoff and path.suffix in (".ann", ".conf"))]
    return together | {path: (path,) for path in rest}


def open_export(
    path: Path, form: Form = "auto", columns: Given | None = None, files: Sequence[Path] | None = None
) -> Table:
    """As `open_table`, with the columns of `EXPORTS`, and also brat's standoff: an .ann file, or a folder of them.

    columns: role -> columns that the user named; a form whose own columns they are is left as it is. files: those of
    the folder, from `tables_of`; None: all. Numbers of classes become names, where a dataset_info.json beside the file
    names them.
    """
    standoff = sorted(path.rglob("*.ann")) if path.is_dir() else [path] if path.suffix == ".ann" else []
    if form == "auto" and standoff:
        return _brat(standoff if files is None or path in files else files)
    table = _with_class_names(open_table(path, form), path)
    named = {name for given in (columns or {}).values() for name in ((given,) if isinstance(given, str) else given)}
    cells = first_cells(table)
    for export in EXPORTS:
        own = {column for column in table.columns if _is_within(column, export.keys)}
        if set(export.keys) <= own and not named & own and all(map(cells.get, export.keys)) and export.marks(cells):
            return _exported(table, export)
    return table


def _is_within(column: str, keys: Iterable[str]) -> bool:
    return any(column == key or column.startswith(f"{key}.") for key in keys)


def _exported(table: Table, export: Export) -> Table:
    nested = {column for column in table.columns if column.rpartition(".")[0] in set(table.columns) - {""}}
    tops = tuple(column for column in table.columns if column not in nested)

    def rows() -> Iterator[tuple[int, dict[str, Any] | Fault]]:
        for number, cells in table.read(tops):
            if isinstance(cells, Fault):
                yield number, cells
                continue
            record = dict(zip(tops, cells, strict=True))
            rest = {key: value for key, value in record.items() if key not in export.keys}
            try:
                yield from [(number, {**rest, **fields}) for fields in export.fields(record)]
            except _LeftOut as error:
                yield number, Fault(error.reason, str(error))
            except (KeyError, TypeError, AttributeError) as error:
                yield number, Fault("bad_record", f"is no record of {export.name} ({error!r})")

    first = [fields for _, fields in islice(rows(), _LOOKED_AT) if not isinstance(fields, Fault)]
    columns = tuple(dict.fromkeys(chain.from_iterable(map(nested_columns, first))))

    def read(wanted: Sequence[str]) -> Records:
        for number, fields in rows():
            if isinstance(fields, Fault):
                yield number, fields
            else:
                yield (
                    number,
                    [[] if (cell := cell_of(fields, one)) is None and one == "spans" else cell for one in wanted],
                )

    return replace(table, columns=columns or table.columns, form=f"{export.name} in {table.form}", read=read)


def _label_studio(record: _Record) -> Iterator[_Record]:
    """The data of a task with `spans`, `label` or `score`; with their own names if there are several of a kind.

    Of several annotations those marked as ground truth count; others have to agree.
    """
    given = [
        one for one in record.get("annotations") or record.get("completions") or () if not one.get("was_cancelled")
    ]
    given = [one for one in given if one.get("ground_truth")] or given
    if not given:
        raise _LeftOut("unlabelled", "has no annotation")
    found = [_results(one["result"]) for one in given]
    if any(one != found[0] for one in found):
        raise _LeftOut("disagreeing", f"has {len(found)} annotations that differ: mark one as ground truth")
    yield {**record["data"], **found[0]}


def _results(results: Sequence[Any]) -> dict[str, Any]:
    by_role: dict[str, dict[str, Any]] = {"spans": {}, "label": {}, "score": {}}
    for one in results:
        kind, value = one.get("type"), one.get("value", {})
        if kind == "labels":
            by_role["spans"].setdefault(one["from_name"], []).append(value)
        elif kind == "choices":
            by_role["label"][one["from_name"]] = value["choices"]
        elif kind in ("rating", "number"):
            by_role["score"][one["from_name"]] = value[kind]
    for own in by_role["spans"].values():
        own.sort(key=lambda span: (span["start"], span["end"]))
    return {role if len(own) == 1 else name: value for role, own in by_role.items() for name, value in own.items()}


def _prodigy(record: _Record) -> Iterator[_Record]:
    if (answer := record["answer"]) != "accept":
        raise _LeftOut({"reject": "rejected", "ignore": "ignored"}[answer], f"'answer' is {answer!r}")
    yield {"label": record["accept"]} if record.get("accept") is not None else {}


def _korquad2(record: _Record) -> Iterator[_Record]:
    for question in record["qas"]:
        yield {"context": record["context"], **question}


def _modu(record: _Record) -> Iterator[_Record]:
    for sentence in record["sentence"]:
        entities = [
            {"start": one["begin"], "end": one["end"], "label": one["label"], "text": one["form"]}
            for one in sentence.get("NE") or ()
        ]
        yield {"id": sentence.get("id"), "text": sentence["form"], "spans": entities}


def _klue_relation(record: _Record) -> Iterator[_Record]:
    from korbert.tasks.sets.changes import EXTRA_ROLES, relation

    ends = {role: EXTRA_ROLES[role].value(record[f"{role}_entity"]) for role in ("subject", "object")}
    yield relation({"text": record["sentence"], "label": record["label"], **ends})


def _are(kind: type) -> Callable[[Any], bool]:
    return lambda cell: isinstance(cell, kind)


EXPORTS: tuple[Export, ...] = (
    Export("Label Studio", ("data", "annotations"), _label_studio, lambda cells: all(map(_are(dict), cells["data"]))),
    Export("Label Studio", ("data", "completions"), _label_studio, lambda cells: all(map(_are(dict), cells["data"]))),
    Export(
        "doccano",
        ("data", "label"),
        lambda record: [{"text": record["data"], "label": record["label"]}],
        lambda cells: all(map(_are(str), cells["data"])),
    ),
    Export(
        "Prodigy",
        ("answer",),
        _prodigy,
        lambda cells: all(isinstance(cell, str) and cell in ("accept", "reject", "ignore") for cell in cells["answer"]),
    ),
    Export("KorQuAD 2", ("context", "qas"), _korquad2, lambda cells: all(map(_are(list), cells["qas"]))),
    Export(
        "모두의 말뭉치",
        ("sentence",),
        _modu,
        lambda cells: all(isinstance(cell, list) and "form" in cell[0] for cell in cells["sentence"] if cell),
    ),
    Export(
        "KLUE-TC",
        ("guid", "title", "label"),
        lambda record: [{"id": record["guid"], "text": record["title"], "label": record["label"]}],
    ),
    Export(
        "KLUE-STS",
        ("guid", "sentence1", "sentence2", "labels"),
        lambda record: [
            {
                "id": record["guid"],
                "sentence1": record["sentence1"],
                "sentence2": record["sentence2"],
                "score": record["labels"]["label"],
            }
        ],
        lambda cells: all(isinstance(cell, dict) and "label" in cell for cell in cells["labels"]),
    ),
    Export("KLUE-RE", ("sentence", "subject_entity", "object_entity", "label"), _klue_relation),
)
"""The forms that are changed; the first that fits is taken."""


def _brat(files: Sequence[Path]) -> Table:
    """Documents of brat: `id`, `text` of the .txt file beside an .ann file, and `spans`, its text-bound annotations."""
    for file in files:
        if not file.with_suffix(".txt").is_file():
            raise CorpusError(f"{file}: no {file.stem}.txt beside it, the text that it is about: put it there")

    def read(wanted: Sequence[str]) -> Records:
        for number, file in enumerate(files, 1):
            text = "".join(open_text(file.with_suffix(".txt")).blocks())
            spans: list[dict[str, Any]] = []
            fault = None
            for place, line in enumerate(open_text(file).lines() if file.stat().st_size else (), 1):
                if not line.startswith("T"):
                    continue  # relations, events, attributes, notes
                try:
                    _, place_of, quoted = line.rstrip("\r\n").split("\t", 2)
                    label, start, end = place_of.split(" ")
                    spans.append({"start": int(start), "end": int(end), "label": label, "text": quoted})
                except ValueError:
                    fault = fault or Fault("bad_spans", f"{file.name}, line {place}: no label, start, end and text")
            cells = {"id": file.stem, "text": text, "spans": spans}
            yield number, fault or [cells[column] for column in wanted]

    return Table(("id", "text", "spans"), "standoff of brat", "", "record", read)


def _with_class_names(table: Table, path: Path) -> Table:
    """The table with names for the numbers of classes, where a file of `datasets` beside it has them."""
    names: dict[str, list[str]] = {}
    for file in (path.parent / "dataset_info.json", path.parent / "dataset_infos.json"):
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            of_configs = [record] if "features" in record else list(record.values())
            for column, feature in chain.from_iterable(one["features"].items() for one in of_configs):
                inner = feature.get("feature", feature)
                if inner.get("_type") == "ClassLabel":
                    names[column] = inner["names"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    if not names:
        return table

    def named(value: Any, of_class: Sequence[str]) -> Any:
        if isinstance(value, list):
            return [named(part, of_class) for part in value]
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        return of_class[number] if type(number) is int and 0 <= number < len(of_class) else value

    def read(wanted: Sequence[str]) -> Records:
        for number, cells in table.read(wanted):
            if not isinstance(cells, Fault):
                cells = [
                    named(cell, names[column]) if column in names else cell
                    for column, cell in zip(wanted, cells, strict=True)
                ]
            yield number, cells

    return replace(table, read=read)
