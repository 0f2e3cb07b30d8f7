"""Files of the tools in which people label, as tables with our columns. docs/exports.md lists what is read of each.

A form is recognised by its keys, in `EXPORTS`; its records become fields with the usual names of roles. Forms that need
no change are not here: doccano's and spaCy's spans, Label Studio's CSV, CoNLL.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from korbert.errors import CorpusError
from korbert.messages import Message, reason
from korbert.records.compression import File
from korbert.records.jsons import Numbered, cell_of, fault_of, parse_line, table_of, value_in
from korbert.records.table import BLANK_BYTES, Cells, Columns, Fault, Table, open_text
from korbert.system import JsonObject

_LOOKED_AT = 1_000  # records that tell the columns


@dataclass(frozen=True)
class Export:
    """The form of a tool.

    name: of the tool. keys: the columns by which it is known; `fields` replace them. fields: the rows of a record, each
    with fields of ours, or a fault if it is not to be learned from; other columns stay. marks: whether the first cells
    of the columns agree, too; each has some. made: columns of ours; a file that has one is not of the form.
    shared: what the first records tell `fields` of all: its further arguments.
    """

    name: str
    keys: tuple[str, ...]
    fields: Callable[..., Iterable[JsonObject | Fault]]
    marks: Callable[[Cells], bool] = lambda cells: True
    made: tuple[str, ...] = ()
    shared: Callable[[Iterable[Any]], JsonObject] = lambda records: {}

    def fits(self, cells: Cells) -> bool:
        """Whether the cells are those of this form. cells: column -> its cells in the first records."""
        return all(map(cells.get, self.keys)) and not cells.keys() & set(self.made) and self.marks(cells)


def is_labelling_export(lines: Sequence[str]) -> bool:
    """Whether the first of these JSON lines is a record of `EXPORTS`."""
    first = parse_line(next(filter(str.strip, lines), ""))
    return isinstance(first, dict) and any(
        export.fits({key: [cell] for key, cell in first.items()}) for export in EXPORTS
    )


def with_usual_names(table: Table, fits: Callable[[Columns], bool]) -> Table:
    """The table with the columns of the form of `EXPORTS` that it has.

    fits: whether these columns hold what is wanted; if only those of the file do, it is left as it is.
    """
    export = next((form for form in EXPORTS if set(form.keys) <= set(table.columns) and form.fits(table.first)), None)
    if export is None:
        return table
    shared = export.shared(record for _, record in islice(table.records(), _LOOKED_AT))

    def rows() -> Numbered:
        for number, record in table.records():
            if not isinstance(record, dict):
                yield number, fault_of(record)
                continue
            rest = {key: value for key, value in record.items() if key not in export.keys}
            try:
                for fields in export.fields(record, **shared):
                    if isinstance(fields, Fault):
                        yield number, fields._replace(record={**rest, **fields.record})
                    else:
                        yield number, {**rest, **fields}
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                cause = reason(error) if type(error) is ValueError else repr(error)
                what = Message("is not a record of {tool} ({cause})", tool=export.name, cause=cause)
                yield number, Fault("bad_record", what)

    def cell(fields: JsonObject, column: str) -> object:
        value = cell_of(fields, column)
        return [] if value is None and column == "spans" else value

    first = (fields.record if isinstance(fields, Fault) else fields for _, fields in islice(rows(), _LOOKED_AT))
    form = Message("{tool} in {form}", tool=export.name, form=table.form)
    exported = table_of(filter(None, first), rows, form, table.encoding, table.unit, cell)
    exported = replace(exported, notes=table.notes)
    return table if fits(table.columns) and not fits(exported.columns) else exported


_ROLES = {"labels": "spans", "choices": "label", "rating": "score", "number": "score"}  # of results of Label Studio


def _controls(records: Iterable[Any]) -> JsonObject:
    """The columns of the controls of Label Studio in these tasks.

    (Role, name of a control) -> the role, or that name if the role has several controls.
    """
    controls = set()
    for record in records:
        with suppress(KeyError, TypeError, AttributeError):  # such a record becomes a fault
            for annotation in _annotations(record):
                for result in annotation["result"]:
                    if role := _ROLES.get(result.get("type")):
                        controls.add((role, result["from_name"]))
    counts = Counter(role for role, _ in controls)
    return {"columns": {(role, name): role if counts[role] == 1 else name for role, name in controls}}


def _annotations(task: JsonObject) -> list[JsonObject]:
    """The annotations of a task that count: those marked as ground truth, else all that are not cancelled."""
    all_annotations = task.get("annotations") or task.get("completions") or ()
    annotations = [annotation for annotation in all_annotations if not annotation.get("was_cancelled")]
    return [annotation for annotation in annotations if annotation.get("ground_truth")] or annotations


def _label_studio(record: JsonObject, columns: dict[tuple[str, str], str]) -> Iterator[JsonObject | Fault]:
    """The data of a task with the columns of its controls. Annotations have to agree. columns: as in `_controls`."""
    try:
        results = [_results(annotation["result"], columns) for annotation in _annotations(record)]
    except ValueError as error:
        yield Fault("bad_record", reason(error), record["data"])
        return
    if not results:
        yield Fault("unlabelled", Message("has no annotation"), record["data"])
    elif any(result != results[0] for result in results):
        what = Message("has {count} annotations that differ: mark one as ground truth", count=len(results))
        yield Fault("disagreeing", what, record["data"])
    else:
        yield {**record["data"], **results[0]}


def _results(results: Sequence[JsonObject], columns: dict[tuple[str, str], str]) -> JsonObject:
    """The labels of an annotation by column. ValueError if a control has several answers for the text."""
    spans: dict[str, list[JsonObject]] = {column: [] for (role, _), column in columns.items() if role == "spans"}
    answers: JsonObject = {}
    for result in results:
        kind = result.get("type")
        if kind not in _ROLES:
            continue
        name: str = result["from_name"]
        column = columns.get((_ROLES[kind], name), name)
        value = result.get("value", {})
        if kind == "labels":
            spans.setdefault(column, []).append(value)
        elif column in answers:
            raise ValueError(
                Message(
                    "has several answers to {name!r} in one annotation, as one for each region: keep one", name=name
                )
            )
        else:
            answers[column] = value[kind]
    for regions in spans.values():
        regions.sort(key=lambda span: (span["start"], span["end"]))
    return {**spans, **answers}


_ANSWERS = {"accept": "", "reject": "rejected", "ignore": "ignored"}  # of Prodigy


def _prodigy(record: JsonObject) -> Iterator[JsonObject | Fault]:
    fields = {} if record.get("accept") is None else {"label": record["accept"]}
    answer = record["answer"]
    if _ANSWERS[answer]:
        yield Fault(_ANSWERS[answer], Message("'answer' is {answer!r}", answer=answer), fields)
    else:
        yield fields


def _modu(record: JsonObject) -> Iterator[JsonObject]:
    for sentence in record["sentence"]:
        entities = [
            {"start": entity["begin"], "end": entity["end"], "label": entity["label"], "text": entity["form"]}
            for entity in sentence.get("NE") or ()
        ]
        yield {"id": sentence.get("id"), "text": sentence["form"], "spans": entities}


def _klue_relation(record: JsonObject) -> Iterator[JsonObject]:
    """Marks subject and object as KLUE-baseline does: `<subj>비틀즈</subj>가 ...`. Nested ones get nested marks."""
    text = record["sentence"]
    marks = []
    for role, mark in (("subject", "subj"), ("object", "obj")):
        entity = value_in(record[f"{role}_entity"])  # in CSV, a string of it
        start = int(entity["start_idx"])
        end = int(entity["end_idx"]) + 1
        if text[start:end] != entity["word"]:
            raise ValueError(
                Message(
                    "the text has {found!r} where the {role}, {word!r}, should be",
                    found=text[start:end],
                    role=role,
                    word=entity["word"],
                )
            )
        marks += [(start, True, -end, f"<{mark}>"), (end, False, -start, f"</{mark}>")]
    for offset, _, _, mark in sorted(marks, reverse=True):  # from the end, so that earlier offsets stay valid
        text = f"{text[:offset]}{mark}{text[offset:]}"
    yield {"text": text}


def _holds(column: str, kind: type, key: str | None = None) -> Callable[[Cells], bool]:
    """Returns a mark of an export: whether all cells of a column have this type.

    key: and whether all that are not empty, or the first items of lists, are objects with this key.
    """

    def marks(cells: Cells) -> bool:
        inner = [cell[0] if isinstance(cell, list) and cell else cell for cell in cells[column]]
        return all(isinstance(cell, kind) for cell in cells[column]) and (
            key is None or all(isinstance(cell, dict) and key in cell for cell in inner if cell)
        )

    return marks


EXPORTS: tuple[Export, ...] = (
    Export("Label Studio", ("data", "annotations"), _label_studio, _holds("data", dict), shared=_controls),
    Export("Label Studio", ("data", "completions"), _label_studio, _holds("data", dict), shared=_controls),
    Export(
        "doccano", ("data", "label"), lambda record: [{"text": record["data"], "label": record["label"]}],
        _holds("data", str), ("text",),
    ),
    Export(
        "Prodigy", ("answer",), _prodigy,
        lambda cells: all(isinstance(cell, str) and cell in _ANSWERS for cell in cells["answer"]),
    ),
    Export(
        "KorQuAD 2", ("context", "qas"),
        lambda record: ({"context": record["context"], **question} for question in record["qas"]),
        _holds("qas", list),
    ),
    Export("모두의 말뭉치", ("sentence",), _modu, _holds("sentence", list, "form"), ("text", "spans")),
    Export(
        "KLUE-TC", ("guid", "title", "label"),
        lambda record: [
            {"id": record.get("id", record["guid"]), "text": record["title"], "label": record["label"]}
        ],
        made=("text",),
    ),
    Export(
        "KLUE-STS", ("guid", "sentence1", "sentence2", "labels"),
        lambda record: [
            {"id": record.get("id", record["guid"]), "score": record["labels"]["label"]}
            | {name: record[name] for name in ("sentence1", "sentence2")}
        ],
        _holds("labels", dict, "label"), ("score",),
    ),
    Export(
        "BGE", ("query", "pos"),
        lambda record: (
            {"query": record["query"], "passage": passage, "negatives": record.get("neg")} for passage in record["pos"]
        ),
        _holds("pos", list), ("passage", "negatives"),
    ),
    Export("KLUE-RE", ("sentence", "subject_entity", "object_entity"), _klue_relation, made=("text",)),
)  # fmt: skip
"""The forms that are changed; the first that fits is taken."""


def tables_of(paths: Iterable[File]) -> dict[File, tuple[File, ...]]:
    """Path -> the files that are read as one table: a file by itself, the files of brat in a folder as the folder.

    The texts and settings next to .ann files are left out; other .txt files lack annotations, which is a fault.
    """
    paths = list(paths)
    files = _of_brat(paths)
    folders: dict[File, list[File]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    together: dict[File, tuple[File, ...]] = {}
    for folder, inside in folders.items():
        is_alone = len(inside) == 1 and inside[0].suffix == ".ann"
        together[inside[0] if is_alone else folder] = tuple(inside)
    rest = [path for path in paths if not (files and path.suffix in (".ann", ".conf", ".txt"))]
    return together | {path: (path,) for path in rest}


def standoff(path: File) -> list[File]:
    """The files of brat that a path stands for: an .ann file itself, or those below a folder, as in `_of_brat`."""
    if path.is_dir():
        files: list[File] = list(path.rglob("[!.]*.ann"))
        return _of_brat([*files, *path.rglob("[!.]*.txt")]) if files else []
    return [path] if path.suffix == ".ann" else []


def _of_brat(paths: Sequence[File]) -> list[File]:
    """The .ann files of these paths, in order, and then the .txt files without one; nothing if none is .ann."""
    files = sorted(path for path in paths if path.suffix == ".ann")
    texts = {path.with_suffix(".txt") for path in files}
    return files + sorted(path for path in paths if files and path.suffix == ".txt" and path not in texts)


def read_standoff(files: Sequence[File]) -> Table:
    """Documents of brat: `id`, `text` of the .txt next to an .ann file, and `spans`, its text-bound annotations.

    A .txt file among `files` is a document without annotations, which is a fault.
    """
    for file in files:
        if not file.is_file():
            raise CorpusError("{file}: no such file: check its name and folder", file=file)
        if file.suffix == ".ann" and not file.with_suffix(".txt").is_file():
            raise CorpusError(
                "{file}: no {stem}.txt next to it, which holds its text: put it there", file=file, stem=file.stem
            )

    def documents() -> Numbered:
        for number, file in enumerate(files, 1):
            document: JsonObject = {"id": file.stem, "text": _content(file.with_suffix(".txt"))}
            if file.suffix != ".ann":
                what = Message("{name} has no {stem}.ann next to it", name=file.name, stem=file.stem)
                yield number, Fault("unlabelled", what, document)
                continue
            try:
                yield number, {**document, "spans": _text_bound(file)}
            except ValueError as error:
                yield number, Fault("bad_spans", reason(error), document)

    return table_of([{"id": "", "text": "", "spans": []}], documents, "standoff of brat", "", "record")


def _content(file: File) -> str:
    """The text of a file, which may be empty."""
    return "".join(open_text(file).blocks()) if file.read_bytes().strip(BLANK_BYTES) else ""


def _text_bound(file: File) -> list[JsonObject]:
    """The entities of an .ann file; relations, events, attributes and notes are left out."""
    spans: list[JsonObject] = []
    for number, line in enumerate(_content(file).split("\n"), 1):
        if line.startswith("T"):
            try:
                _, label_and_span, quoted = line.rstrip("\r").split("\t", 2)
                label, start, end = label_and_span.split(" ")
                spans.append({"start": int(start), "end": int(end), "label": label, "text": quoted})
            except ValueError:
                raise ValueError(
                    Message("{file}, line {number}: no label, start, end and text", file=file.name, number=number)
                ) from None
    return spans
