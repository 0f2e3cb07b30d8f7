"""Files that are neither texts nor tables: what they are, and the way to their text."""

import re
from collections.abc import Sequence

from korbert.errors import CorpusError
from korbert.records.form import Format
from korbert.records.table import beginning

_LOOKED_AT = 4_096  # bytes of a text
_TEXT = "save its text as .txt in UTF-8"
_TABLE = "save the table as .xlsx, or as CSV in UTF-8"
_OFFICE = "\xd0\xcf\x11\xe0"
_ZIP = "PK\x03\x04"

# How bytes begin, read as Latin-1; endings of the name (none: any); what it is, and what to do. The first that fits.
_BINARY: Sequence[tuple[str, tuple[str, ...], str, str]] = (
    ("%PDF-", (), "a PDF", f"{_TEXT}, as with pdftotext"),
    (_OFFICE, (".hwp",), "a document of Hangul (HWP)", f"in Hangul, {_TEXT}"),
    (_OFFICE, (".doc", ".ppt"), "an old document of Office", _TEXT),
    (_OFFICE, (".xlsx", ".xlsm"), "a workbook with a password", "save it without one"),
    (_OFFICE, (), "an old Excel workbook (.xls), or a document of that age", _TABLE),
    (f"{_ZIP}.*?hwp\\+zip", (), "a document of Hangul (HWPX)", f"in Hangul, {_TEXT}"),
    (f"{_ZIP}.*?word/", (), "a document of Word", _TEXT),
    (f"{_ZIP}.*?ppt/", (), "a presentation", _TEXT),
    (f"{_ZIP}.*?xl/workbook\\.bin", (), "a binary Excel workbook (.xlsb)", _TABLE),
    (f"{_ZIP}.*?opendocument", (), "a document of LibreOffice", f"{_TABLE}; or {_TEXT}"),
    (f"{_ZIP}(?!.*?xl/)", (), "a ZIP archive", "unpack it, and give a file of it"),
)
_BY_LINE = "; --form lines reads each line as a text"
_MARKUP: Sequence[tuple[str, tuple[str, ...], str, str]] = (  # the same of the first lines of a text
    (r"\s*<(?:!doctype html|html)\b", (), "HTML", _TEXT + _BY_LINE),
    (r"\s*<\?xml", (), "XML", "write its texts as JSON lines or CSV" + _BY_LINE),
    (r"WEBVTT|\s*<sami|\s*\d+\s*\n\s*\d\d:\d\d:\d\d[,.]\d", (), "a file of subtitles", _TEXT + _BY_LINE),
    (r"#FORMAT=WebAnno TSV", (), "WebAnno TSV of INCEpTION", "export it as CoNLL 2002, .conll"),
    (r"__label__\S", (), "of fastText", "write two columns, label and text, below a line with these names: .tsv"),
    (
        r"\s*(?:(?:var|let|const) )?[\w.]+ ?= ?[\[{]\s*\n", (), "a script", "keep the JSON in it alone, as .json",
    ),
    ("", (".html", ".htm", ".xml"), "markup", _TEXT + _BY_LINE),
    ("", (".srt", ".vtt", ".smi"), "a file of subtitles", _TEXT + _BY_LINE),
    ("", (".js", ".ts", ".py", ".css", ".java", ".sh", ".sql"), "a script", _TEXT + _BY_LINE),
)  # fmt: skip


def refuse_foreign(head: bytes, name: str, form: Format) -> None:
    """Raises CorpusError, with the way out, for a file that begins so and holds neither texts nor a table.

    form: as given; unless it is "auto", only binary files are refused.
    """
    if head.startswith(_ZIP.encode()) and form != "auto" and not form.startswith("xlsx"):
        raise CorpusError(
            "{name}: is a workbook of Excel, or another ZIP archive, not {form}: save it as CSV", name=name, form=form
        )
    looked_at = [(_BINARY, head.decode("latin-1"))]
    if form == "auto":
        looked_at.append((_MARKUP, "\n".join(beginning(head[:_LOOKED_AT])[1])))
    for known, start in looked_at:
        for pattern, endings, what, do in known:
            if name.lower().endswith(endings or "") and re.match(pattern, start, re.DOTALL | re.IGNORECASE):
                raise CorpusError("{name}: is {what}: {do}", name=name, what=what, do=do)
