"""Workbooks of Excel as tables of text, and texts as a workbook.

A cell is read as people see it: whole numbers without .0, dates by their format, a formula as its value when the file
was saved. Numbers keep the digits that Excel keeps (15), whatever decimals, percents or currency are shown.
"""

import datetime
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from korbert.errors import CorpusError, KorbertError
from korbert.messages import Message, argument
from korbert.names import BLANK, did_you_mean, same_name
from korbert.records.compression import File, open_file
from korbert.records.table import Fault, Records, Table
from korbert.system import package

if TYPE_CHECKING:
    from openpyxl.cell import Cell, MergedCell

_LARGEST = 1 << 28  # bytes of XML in a workbook; Excel's own limits allow more, memory does not
_MOST_ROWS = 1 << 20  # of a sheet, by Excel
_LONGEST = 32_767  # characters of a cell, by Excel
_MOST_DIGITS = 15  # of a number, by Excel
_HIDDEN = re.compile(rb'<(?:\w+:)?(?:row|col)\b[^<>]*\bhidden="(?:1|true)"')
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\b")
_UNSAVED = re.compile(rb"<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*(?:<(?:\w+:)?v\s*/>)?\s*</(?:\w+:)?c>")
_OF_A_DATE = re.compile(r'"([^"]*)"|\\(.)|\[[^\]]*\]|(AM/PM|y+|m+|d+|h+|s+)|(.)', re.IGNORECASE | re.DOTALL)
_BY_LOCALE = {"mm-dd-yy": "yyyy-mm-dd", "m/d/yy h:mm": "yyyy-mm-dd h:mm"}  # as Excel shows them in Korea
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def read_workbook(path: File, sheet: str = "") -> Table:
    """A sheet of a workbook as a table; its first row that is not empty names the columns. Empty rows are left out.

    sheet: its name; "": the first one that is not hidden. Raises CorpusError for an unknown sheet and for a workbook
    that is damaged or too large; MissingPackage without openpyxl.
    """
    with _open_workbook(path) as book:
        chosen = _choose_sheet(book.worksheets, sheet, path)
        title = chosen.title
        other_titles = [other.title for other in book.worksheets if other is not chosen]
        number, header = next(_rows(chosen, path), (0, []))
        if not header:
            raise CorpusError(
                "{path}: the sheet {title!r} is empty: name another one with {option}",
                path=path,
                title=title,
                option=argument("sheet"),
            )
        xml = chosen._get_source().read()
    unread = 0 if sheet else len(other_titles)
    hidden, merged, unsaved = (len(pattern.findall(xml)) for pattern in (_HIDDEN, _MERGED, _UNSAVED))
    note_counts = {
        Message(
            "sheets not read: {count:,} ({others}): {option} names one",
            count=unread, others=", ".join(other_titles), option=argument("sheet"),
        ): unread,
        Message("hidden rows or columns, read all the same: {count:,}", count=hidden): hidden,
        Message("blocks of merged cells, of which the first cell alone counts: {count:,}", count=merged): merged,
        Message("formulas without a value, read as empty: {count:,}: save the file in Excel", count=unsaved): unsaved,
    }  # fmt: skip
    names = tuple(name.strip(BLANK) for name in header)

    def read(wanted: Sequence[str]) -> Records:
        indices = [names.index(column) for column in wanted]
        with _open_workbook(path) as book:
            for place, cells in _rows(_choose_sheet(book.worksheets, title, path), path):
                if place > number:
                    if len(cells) > len(names):
                        what = Message(
                            "{count} cells where the first row has {width}", count=len(cells), width=len(names)
                        )
                        yield place, Fault("bad_fields", what)
                    else:
                        cells += [""] * (len(names) - len(cells))
                        yield place, [cells[index] for index in indices]

    notes = tuple(note for note, count in note_counts.items() if count)
    return Table(names, Message("Excel, sheet {name}", name=title), "", "row", read, notes=notes)


@contextmanager
def _open_workbook(path: File) -> Iterator[Any]:
    """The workbook, whose cells are read as they are asked for. CorpusError if it is damaged or too large."""
    package("defusedxml", "an Excel file")  # openpyxl uses it, where it is there
    openpyxl = package("openpyxl", "an Excel file")
    warnings.filterwarnings("ignore", module="openpyxl")  # of parts that are not read
    with open_file(path) as file:
        try:
            size = sum(part.file_size for part in ZipFile(file).infolist() if part.filename.endswith((".xml", ".rels")))
            if size > _LARGEST:
                raise CorpusError(
                    "{path}: holds {size:,} bytes of XML, more than {largest:,}: save the table as CSV",
                    path=path,
                    size=size,
                    largest=_LARGEST,
                )
            yield openpyxl.load_workbook(file, read_only=True, data_only=True)
        except KorbertError:
            raise
        except Exception as error:  # whatever the parsers of ZIP, XML and openpyxl raise
            cause = f"{type(error).__name__}: {error}".splitlines()[0]
            raise CorpusError(
                "{path}: not a whole workbook ({cause:.200}): open it in Excel and save it", path=path, cause=cause
            ) from error


def _choose_sheet(sheets: Sequence[Any], name: str, path: File) -> Any:
    """The sheet of that name, or the first visible one."""
    matches = [
        sheet for sheet in sheets if same_name(sheet.title, name) or (not name and sheet.sheet_state == "visible")
    ]
    if not matches:
        titles = [sheet.title for sheet in sheets]
        raise CorpusError(
            "{path}: no sheet {name!r} among {titles}: {hint}",
            path=path,
            name=name,
            titles=", ".join(titles),
            hint=did_you_mean(name, titles, 0.3) or Message("name one of these"),
        )
    return matches[0]


def _rows(sheet: Any, path: File) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each row that is not empty, up to its last cell with text."""
    sheet.reset_dimensions()  # what the file says of them may be wrong
    for number, row in enumerate(sheet.iter_rows(), 1):
        if number > _MOST_ROWS:
            raise CorpusError(
                "{path}: row {number:,} is below the last one of Excel: save the table as CSV", path=path, number=number
            )
        cells = list(map(_display, row))
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


def _display(cell: "Cell | MergedCell") -> str:
    """The text of a cell as people see it."""
    value = cell.value
    if value is None:
        return ""
    form = cell.number_format
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.date | datetime.time):
        return _date(value, form)
    if isinstance(value, datetime.timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(value, int | float):
        number = f"{value:.15g}" if abs(value) < 1e15 else f"{value:.0f}"
        return number.zfill(len(form)) if form.strip("0") == "" else number  # 06234, a postal code
    return str(package("openpyxl.utils.escape", "an Excel file").unescape(str(value)))


def _date(value: datetime.date | datetime.time, form: str) -> str:
    """A date or a time in a format of Excel, as yyyy"년" m"월" d"일".

    As in ISO 8601 in a format with other letters, or with names of days and months (ddd, mmm).
    """
    tokens = _OF_A_DATE.findall(_BY_LOCALE.get(form, form).split(";")[0])
    kinds = [*(letters[0].lower() for _, _, letters, _ in tokens if letters), ""]
    codes = {"y": "%Y", "m": "%m", "d": "%d", "h": "%I" if "a" in kinds else "%H", "s": "%S", "a": "%p", "minute": "%M"}
    shown = ""
    before = ""
    for quoted, escaped, letters, other in tokens:
        if other.isalpha() or letters.lower().startswith(("ddd", "mmm")):
            return str(value)
        kind = kinds.pop(0) if letters else ""
        is_minute = kind == "m" and (before == "h" or kinds[0] == "s")
        part = quoted + escaped + other
        if kind:
            code = "minute" if is_minute else kind
            part = value.strftime(codes[code])
        shown += (part.lstrip("0") or "0") if len(letters) == 1 else part
        before = kind or before
    return shown


def workbook_of(rows: Iterable[Sequence[str | float]]) -> tuple[bytes, int]:
    """A workbook of these texts and numbers, and the number of texts that Excel's limit has cut.

    No text becomes a formula. A number that Excel would round becomes a text, such as a long id. Raises CorpusError for
    more rows than a sheet holds; MissingPackage without openpyxl.
    """
    openpyxl = package("openpyxl", "an Excel file")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    num_cut = 0
    for number, row in enumerate(rows, 1):
        if number > _MOST_ROWS:
            raise CorpusError(
                "a sheet of Excel holds {most_rows:,} rows, and there are more: write {option}",
                most_rows=_MOST_ROWS,
                option=argument("csv"),
            )
        cells = []
        for value in row:
            if not isinstance(value, str) and abs(value) < 10**_MOST_DIGITS:
                cells.append(openpyxl.cell.WriteOnlyCell(sheet, value))
                continue
            text = str(value)
            num_cut += len(text) > _LONGEST
            text = _NOT_IN_XML.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
            cells.append(openpyxl.cell.WriteOnlyCell(sheet, text))
            cells[-1].data_type = "s"
        sheet.append(cells)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue(), num_cut
