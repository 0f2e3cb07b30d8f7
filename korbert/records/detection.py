"""Detects the format of a file: given by the user, or from its extension or content."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Literal, NewType, cast, get_args

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message, argument
from korbert.names import did_you_mean
from korbert.records import conll, excel, jsons, labelling_tools
from korbert.records.compression import PACKED, File
from korbert.records.delimited import delimiter_in, read_delimited
from korbert.records.lines import LONGEST
from korbert.records.table import Columns, Fault, Table, TextFile, beginning, head_of, text_file

Named = Literal[
    "auto", "csv", "tsv", "tsv-plain", "tsv-quoted", "jsonl", "json", "parquet", "arrow", "conll", "conllu", "klue-ner",
    "xlsx",
]  # fmt: skip
Sheet = NewType("Sheet", str)
"""A sheet of a workbook: xlsx:NAME."""
Form = Named | Sheet
FORMS: tuple[Named, ...] = get_args(Named)

Format = Literal["lines"] | Form  # of commands that also read plain lines of text
FORMATS: tuple[Format, ...] = ("auto", "lines", *FORMS[1:])

_ENDINGS: Mapping[str, Form] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".jsonlines": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".conllu": "conllu",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
_TEXT_READERS: Mapping[Form, Callable[[TextFile], Table]] = {
    "csv": lambda text: read_delimited(text, ",", quoted=True),
    "tsv": lambda text: read_delimited(text, "\t"),
    "tsv-plain": lambda text: read_delimited(text, "\t", quoted=False),
    "tsv-quoted": lambda text: read_delimited(text, "\t", quoted=True),
    "jsonl": jsons.read_jsonl,
    "json": jsons.read_json,
    "conll": conll.read_conll,
    "conllu": conll.read_conllu,
    "klue-ner": conll.read_klue_entities,
}
_MAGIC_BYTES: Mapping[bytes, Form] = {
    b"PAR1": "parquet",
    b"ARRO": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"PK\x03\x04": "xlsx",
}
BINARY = ("parquet", "arrow", "xlsx")
_TAG = re.compile(r"[-_OBI]|[BIESLU][-_].+|.+[-_][BIESLU]|[A-Z][A-Z0-9+*$.,:-]*")
_LIST = re.compile(r"\s*\[\s*(?:\{|$)")
_CONLLU_WIDTH = 10

_MARKUP_BYTES = 4_096  # of a text, that tell its markup
_TEXT = Message("save its text as .txt in UTF-8")
_TABLE = Message("save the table as .xlsx, or as CSV in UTF-8")
_TEXT_OR_LINES = Message("save its text as .txt in UTF-8; --form lines reads each line as a text")
_HANGUL = Message("in Hangul, save its text as .txt in UTF-8")
_OFFICE = "\xd0\xcf\x11\xe0"
_ZIP = "PK\x03\x04"
_PART = f"(?={_ZIP}).*?{_ZIP}.{{26}}"  # up to the name of a part: short names also occur in compressed bytes

# How bytes begin, read as Latin-1; endings of the name (none: any); what it is, and what to do. The first that fits.
_BINARY: Sequence[tuple[str, tuple[str, ...], Message, Message]] = (
    ("%PDF-", (), Message("a PDF"), Message("save its text as .txt in UTF-8, as with pdftotext")),
    (_OFFICE, (".hwp",), Message("a document of Hangul (HWP)"), _HANGUL),
    (_OFFICE, (".doc", ".ppt"), Message("an old document of Office"), _TEXT),
    (_OFFICE, (".xlsx", ".xlsm"), Message("a workbook with a password"), Message("save it without one")),
    (_OFFICE, (), Message("an old Excel workbook (.xls), or a document of that age"), _TABLE),
    (f"{_ZIP}.*?hwp\\+zip", (), Message("a document of Hangul (HWPX)"), _HANGUL),
    (f"{_PART}word/", (), Message("a document of Word"), _TEXT),
    (f"{_PART}ppt/", (), Message("a presentation"), _TEXT),
    (f"{_ZIP}.*?xl/workbook\\.bin", (), Message("a binary Excel workbook (.xlsb)"), _TABLE),
    (
        f"{_ZIP}.*?opendocument", (), Message("a document of LibreOffice"),
        Message("save the table as .xlsx, or as CSV in UTF-8; or save its text as .txt in UTF-8"),
    ),
    (f"{_ZIP}(?!.*?xl/)", (), Message("a ZIP archive"), Message("unpack it, and give a file of it")),
)  # fmt: skip
_MARKUP: Sequence[tuple[str, tuple[str, ...], Message, Message]] = (  # the same of the first lines of a text
    (r"\s*<(?:!doctype html|html)\b", (), Message("HTML"), _TEXT_OR_LINES),
    (
        r"\s*<\?xml", (), Message("XML"),
        Message("write its texts as JSON lines or CSV; --form lines reads each line as a text"),
    ),
    (
        r"WEBVTT|\s*<sami|\s*\d+\s*\n\s*\d\d:\d\d:\d\d[,.]\d", (), Message("a file of subtitles"), _TEXT_OR_LINES,
    ),
    (r"#FORMAT=WebAnno TSV", (), Message("WebAnno TSV of INCEpTION"), Message("export it as CoNLL 2002, .conll")),
    (
        r"__label__\S", (), Message("of fastText"),
        Message("write two columns, label and text, below a line with these names: .tsv"),
    ),
    (
        r"\s*(?:(?:var|let|const) )?[\w.]+ ?= ?[\[{]\s*\n", (), Message("a script"),
        Message("keep the JSON in it alone, as .json"),
    ),
    ("", (".html", ".htm", ".xml"), Message("markup"), _TEXT_OR_LINES),
    ("", (".srt", ".vtt", ".smi"), Message("a file of subtitles"), _TEXT_OR_LINES),
    ("", (".js", ".ts", ".py", ".css", ".java", ".sh", ".sql"), Message("a script"), _TEXT_OR_LINES),
)  # fmt: skip


def holds_records(folder: File) -> bool:
    """Whether open_table opens this folder: one saved by `datasets`, or one of brat."""
    is_saved = any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))
    return is_saved or (folder.is_dir() and bool(labelling_tools.standoff(folder)))


def open_table(
    path: File,
    form: Form = "auto",
    fits: Callable[[Columns], bool] = lambda columns: True,
    files: Sequence[File] | None = None,
    longest: int = LONGEST,
) -> Table:
    """Opens a file, a folder saved by `datasets`, or one of brat, as a table. Reads only its beginning.

    fits: whether columns hold what is wanted: see labelling_tools.with_usual_names. files: those of a folder of brat;
    None: all. longest: characters of a quoted field of CSV.
    Raises CorpusError for a missing file, any other folder, an unknown format, and a file not in its format;
    SettingsError for an unknown `form`.
    """
    if form == "auto":
        brat_files = labelling_tools.standoff(path) if files is None or path in files else files
        if brat_files:
            return labelling_tools.read_standoff(brat_files)
    return labelling_tools.with_usual_names(open_plain(path, form, longest=longest), fits)


def open_plain(path: File, form: Form, encoding: str = "auto", longest: int = LONGEST) -> Table:
    """As open_table, with the columns as the file names them.

    encoding: of text; "auto" detects it. longest: characters of a quoted field of CSV.
    """
    if form not in FORMS and not form.startswith("xlsx:"):
        hint = did_you_mean(form, FORMS) or Message("name one of these")
        raise SettingsError("no format {form!r} among {forms}: {hint}", form=form, forms=", ".join(FORMS), hint=hint)
    if path.is_dir():
        if form not in ("auto", "arrow"):
            raise CorpusError("{path}: is a folder, not a file of format {form}: give a file", path=path, form=form)
        from korbert.records import arrow  # not at the top: a submission for KorQuAD has no pyarrow

        return arrow.read_batches(arrow.dataset_files(path), Message("Arrow of datasets"))
    head = head_of(path)
    form = cast(
        Form, detect_format(head, str(path), form, lambda _: _looks_like(text_file(path, head, encoding, longest)))
    )
    if form in ("parquet", "arrow"):
        from korbert.records import arrow

        return arrow.read_batches([path], form.capitalize())
    if form.startswith("xlsx"):
        return excel.read_workbook(path, form.removeprefix("xlsx").removeprefix(":"))
    return _TEXT_READERS[form](text_file(path, head, encoding, longest))


def detect_format(head: bytes, name: str, form: Format, fallback: Callable[[Sequence[str]], Format]) -> Format:
    """Detects the format of a file from `form`, its first bytes or its name.

    The first lines of a text then decide between formats that are alike, such as csv and tsv, even if `form` names one.

    fallback: the format of a text that begins with these lines, and of which nothing else is known.
    Raises CorpusError for a file that is neither texts nor a table.
    """
    refuse_foreign(head, name, form)
    form = form_of(head, name) if form == "auto" else form
    if form in BINARY or form.startswith("xlsx:") or form == "lines":
        return form
    _, lines = beginning(head)
    form = form_by_content(form, lines)
    return fallback(lines) if form == "auto" else form


def refuse_foreign(head: bytes, name: str, form: Format) -> None:
    """Raises CorpusError, with what to do, for a file whose beginning shows that it holds neither texts nor a table.

    form: as given; unless it is "auto", only binary files are refused.
    """
    if head.startswith(_ZIP.encode()) and form != "auto" and not form.startswith("xlsx"):
        raise CorpusError(
            "{name}: is a workbook of Excel, or another ZIP archive, not {form}: save it as CSV", name=name, form=form
        )
    checks = [(_BINARY, head.decode("latin-1"), re.DOTALL)]
    if form == "auto":
        checks.append((_MARKUP, "\n".join(beginning(head[:_MARKUP_BYTES])[1]), re.DOTALL | re.IGNORECASE))
    for patterns, start, flags in checks:
        for pattern, endings, what, remedy in patterns:
            if name.lower().endswith(endings or "") and re.match(pattern, start, flags):
                raise CorpusError("{name}: is {what}: {do}", name=name, what=what, do=remedy)


def form_of(head: bytes, name: str) -> Form:
    """The format of a file by its first bytes, or by the ending of its name; "auto" if neither tells it."""
    unpacked = PurePath(name).with_suffix("") if PurePath(name).suffix.lower() in PACKED else PurePath(name)
    return _MAGIC_BYTES.get(head[:4], _ENDINGS.get(unpacked.suffix.lower(), "auto"))


def form_by_content(form: Form, lines: Sequence[str]) -> Form:
    """The format of a text file that begins with these lines; "auto" for plain lines, CSV and TSV without an ending.

    form: by its ending, which content may correct.
    """
    first = next(filter(str.strip, lines), "")
    if form in ("tsv", "auto") and first.startswith("## "):
        if conll.are_characters(lines):
            return "klue-ner"
        if _is_conll(lines):
            return "conll"
    if form == "csv" and "\t" in first and not set(",;") & set(first):
        return "tsv"
    if form in ("json", "jsonl"):
        return "json" if is_multiline_json(lines) or (form == "json" and _is_single_json_value(lines)) else "jsonl"
    if form == "auto" and is_multiline_json(lines):
        return "json"
    token_lines = [line for line in lines if line.strip() and not line.startswith("#")] if form == "auto" else []
    if (
        token_lines
        and all(len(line.split("\t")) == _CONLLU_WIDTH for line in token_lines)
        and token_lines[0].startswith(("1\t", "1-"))
    ):
        return "conllu"
    return "conll" if form == "auto" and _is_conll(lines) else form


def is_multiline_json(lines: Sequence[str]) -> bool:
    """Whether a file that begins with these lines is a list of objects, or objects over several lines.

    Such an object begins with a line that is a brace alone; other objects are taken for JSON lines.
    """
    first, second = [*filter(str.strip, lines), "", ""][:2]
    if first.strip() == "{":
        return not second.lstrip().startswith("{")  # else a broken line of JSON lines
    return _LIST.match(first) is not None and (not second or isinstance(jsons.parse_line(first), Fault))


def _is_single_json_value(lines: Sequence[str]) -> bool:
    """Whether a JSON file that begins with these lines is one object with a list of records, or objects over lines."""
    filled = list(filter(str.strip, lines))
    if len(filled) == 1 and isinstance(value := jsons.parse_line(filled[0]), dict):
        return any(isinstance(inner, list) for inner in value.values())
    return bool(filled) and not jsons.holds_lines(filled)


def _looks_like(text: TextFile) -> Form:
    first = next(filter(str.strip, text.head), "")
    if first.lstrip().startswith("["):
        return "json"
    if first.lstrip().startswith("{"):
        return "jsonl" if jsons.holds_lines(text.head) else "json"
    if (delimiter := delimiter_in(first)) in first:
        return "tsv" if delimiter == "\t" else "csv"
    raise CorpusError(
        "{text}: neither its ending nor its first line ({first!r}) tells its format: name it with "
        "{option}, or if it is a table, write the names of its columns into the first line: text,label",
        text=text.path,
        first=first[:40],
        option=argument("form"),
    )


def _is_conll(lines: Sequence[str]) -> bool:
    """Whether blank lines separate blocks whose lines have the same number of columns, the last of them a tag."""
    filled = [line for line in lines if line.strip() and not line.startswith("-DOCSTART-")]
    last = max((number for number, line in enumerate(lines) if line.strip()), default=0)
    ends_inside = any(not line.strip() for line in lines[:last])
    delimiter = "\t" if any("\t" in line for line in filled) else None
    rows = [line.split(delimiter) for line in filled if not line.startswith(("# ", "## ", ";", "$"))]
    are_tagged = all(len(row) == len(rows[0]) > 1 and _TAG.fullmatch(row[-1].strip()) for row in rows)
    return ends_inside and bool(rows) and are_tagged
