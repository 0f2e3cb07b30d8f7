"""Detects the format of a labelled file: given by the user, or from its extension or content."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from korbert.errors import CorpusError, SettingsError
from korbert.streams.frames import PACKED, open_bytes
from korbert.tasks.files import arrow, jsons, tagged
from korbert.tasks.files.delimited import read_delimited
from korbert.tasks.files.form import FORMS, Form
from korbert.tasks.files.table import Table, TextFile, open_text

__all__ = ["FORMS", "Form", "open_table"]

_ENDINGS: Mapping[str, Form] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".conllu": "conllu",
}
_OF_TEXT: Mapping[Form, Callable[[TextFile], Table]] = {
    "csv": lambda text: read_delimited(text, ",", quoted=True),
    "tsv": lambda text: read_delimited(text, "\t"),
    "tsv-plain": lambda text: read_delimited(text, "\t", quoted=False),
    "tsv-quoted": lambda text: read_delimited(text, "\t", quoted=True),
    "jsonl": jsons.read_jsonl,
    "json": jsons.read_json,
    "conll": tagged.read_conll,
    "conllu": tagged.read_conllu,
    "klue-ner": tagged.read_klue_entities,
}
_BINARY: Mapping[bytes, Form] = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow"}
_FOREIGN = {b"PK\x03\x04": "a ZIP archive or an Excel workbook", b"\xd0\xcf\x11\xe0": "an old Excel workbook"}
_HEAD_LINES = 200
_CONLLU_WIDTH = 10


def open_table(path: Path, form: Form = "auto") -> Table:
    """Opens a file, or a folder saved by `datasets`, as a table. Reads only its beginning.

    Raises CorpusError for a missing file, any other folder, an unknown format, and a file not in its format;
    SettingsError for an unknown `form`.
    """
    if form not in FORMS:
        near = difflib.get_close_matches(form, FORMS, 1)
        raise SettingsError(
            f"no format {form!r} among {', '.join(FORMS)}" + (f": did you mean {near[0]}?" * bool(near))
        )
    if path.is_dir():
        if form not in ("auto", "arrow"):
            raise CorpusError(f"{path}: is a folder, not a file of format {form}: give a file")
        return arrow.read_arrow(arrow.dataset_files(path), "Arrow of datasets")
    if not path.exists():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        alike = difflib.get_close_matches(path.name, beside, 1)
        raise CorpusError(
            f"{path}: no such file: " + (f"did you mean {alike[0]}?" if alike else "check its name and folder")
        )
    with open_bytes(path) as file:
        head = file.read(4)
    if head in _FOREIGN:
        raise CorpusError(f"{path}: is {_FOREIGN[head]}: save the table as CSV in UTF-8")
    if form == "auto":
        unpacked = path.with_suffix("") if path.suffix in PACKED else path
        form = _BINARY.get(head, _ENDINGS.get(unpacked.suffix.lower(), "auto"))
    if form == "parquet":
        return arrow.read_parquet(path)
    if form == "arrow":
        return arrow.read_arrow([path], "Arrow")
    text = open_text(path)
    lines = [line.rstrip("\r\n") for line in islice(text.lines(), _HEAD_LINES)]
    return _OF_TEXT[_found(form, lines, path)](text)


def _found(form: Form, lines: Sequence[str], path: Path) -> Form:
    """The format of a text file that begins with these lines. form: by its extension, which content may correct."""
    first = next((line for line in lines if line.strip()), "")
    if form in ("tsv", "auto") and first.startswith("## "):
        if tagged.are_characters(lines):
            return "klue-ner"
        if _is_conll(lines):
            return "conll"
    if form == "csv" and "\t" in first and "," not in first:
        return "tsv"
    if form == "json" and first.lstrip().startswith("{") and jsons.holds_lines(lines):
        return "jsonl"
    return form if form != "auto" else _looks_like(lines, first, path)


def _looks_like(lines: Sequence[str], first: str, path: Path) -> Form:
    if first.lstrip().startswith("["):
        return "json"
    if first.lstrip().startswith("{"):
        return "jsonl" if jsons.holds_lines(lines) else "json"
    words = [line for line in lines if line.strip() and not line.startswith("#")]
    if words and all(len(line.split("\t")) == _CONLLU_WIDTH for line in words) and words[0].startswith(("1\t", "1-")):
        return "conllu"
    if _is_conll(lines):
        return "conll"
    if "\t" in first:
        return "tsv"
    if "," in first:
        return "csv"
    raise CorpusError(f"{path}: neither its ending nor its first line ({first[:40]!r}) tells its format: say form")


def _is_conll(lines: Sequence[str]) -> bool:
    """Whether blank lines separate blocks whose lines all have the same number of columns, at least two."""
    filled = [line for line in lines if line.strip() and not line.startswith("-DOCSTART-")]
    last = max((number for number, line in enumerate(lines) if line.strip()), default=0)
    ends_inside = any(not line.strip() for line in lines[:last])
    delimiter = "\t" if any("\t" in line for line in filled) else None
    widths = {len(line.split(delimiter)) for line in filled if not line.startswith(("# ", "## ", ";", "$"))}
    return ends_inside and len(widths) == 1 and min(widths) > 1
