"""Workbooks of Excel, written by openpyxl: cells as people see them, and what people may not expect is said."""

import datetime
import sys
import zipfile

import openpyxl
import pytest

from korbert.errors import CorpusError, KorbertError
from korbert.records import open_table
from korbert.records.excel import workbook_of
from korbert.tasks.files import ROLES, read_rows

DAY = datetime.datetime(2026, 11, 8, 15, 4, 5)


def _saved(folder, rows, change=lambda sheet: None):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    change(book.active)
    book.save(folder / "a.xlsx")
    return folder / "a.xlsx"


def _cells(table):
    return [cells for _, cells in table.read(table.columns)]


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        ("좋아요", "General", "좋아요"),
        ("첫 줄\n둘째 줄", "General", "첫 줄\n둘째 줄"),
        ("줄_x000D_", "General", "줄\r"),
        (3, "General", "3"),
        (3.0, "0.00", "3"),
        (0.1 + 0.2, "General", "0.3"),
        (1234567890123456, "General", "1234567890123456"),
        (6234, "00000", "06234"),
        (True, "General", "TRUE"),
        (DAY, "yyyy-mm-dd", "2026-11-08"),
        (DAY, "mm-dd-yy", "2026-11-08"),
        (DAY, 'yyyy"년" m"월" d"일"', "2026년 11월 8일"),
        (DAY, "yyyy/m/d h:mm AM/PM", "2026/11/8 3:04 PM"),
        (DAY, "mm:ss", "04:05"),
        (DAY, "yyyy-mm-dd (aaa)", "2026-11-08 15:04:05"),
        (DAY, "[$-F800]dddd\\, mmmm dd\\, yyyy", "2026-11-08 15:04:05"),
        (DAY, "d-mmm-yy", "2026-11-08 15:04:05"),
        (DAY, "DDD", "2026-11-08 15:04:05"),
        (datetime.time(3, 5), "h:mm", "3:05"),
        (datetime.timedelta(hours=30), "[h]:mm:ss", "30:00:00"),
    ],
)
def test_a_cell_is_read_as_people_see_it(tmp_path, value, form, shown):
    def formatted(sheet):
        sheet["A2"].number_format = form

    assert _cells(open_table(_saved(tmp_path, [["글"], [value]], formatted))) == [[shown]]


def test_rows_are_read_with_their_places(tmp_path):
    path = _saved(tmp_path, [[], ["글", "감정"], ["좋아요", 1], [], ["싫어요", 0], ["", 1], ["넓다", 1, "더"]])
    rows = read_rows(path, [ROLES["text"], ROLES["label"]], columns={"text": "글", "label": "감정"})
    assert rows.rows == [{"text": "좋아요", "label": "1"}, {"text": "싫어요", "label": "0"}]
    assert str(rows.places[1]) == f"{path}, row 5"
    assert set(rows.dropped) == {"no_text", "bad_fields"}


def _with_surprises(sheet):
    sheet.row_dimensions[2].hidden = True
    sheet.merge_cells("A3:A4")
    sheet["B2"] = "=1+1"


@pytest.mark.parametrize(
    "said",
    [
        "hidden rows or columns, read all the same: 1",
        "blocks of merged cells, of which the first cell alone counts: 1",
        "formulas without a value, read as empty: 1: save the file in Excel",
    ],
)
def test_what_people_may_not_expect_is_said(tmp_path, said):
    path = _saved(tmp_path, [["text", "label"], ["가", 1], ["나", 2], ["다", 3]], _with_surprises)
    assert f"{path}: {said}" in read_rows(path, [ROLES["text"]]).notes


def test_a_formula_is_its_saved_value(tmp_path):
    path = _saved(tmp_path, [["글", "n"], ["가", "=1+1"]])
    _changed(path, b"<v />", b"<v>2</v>")
    assert _cells(open_table(path)) == [["가", "2"]]


@pytest.fixture
def sheets(tmp_path):
    """A hidden sheet, 응답, and 설명."""
    book = openpyxl.Workbook()
    book.active.sheet_state = "hidden"
    for name in ("응답", "설명"):
        book.create_sheet(name).append([name])
    book["Sheet"].append(["숨김"])
    book.save(tmp_path / "a.xlsx")
    return tmp_path / "a.xlsx"


@pytest.mark.parametrize(("form", "column"), [("auto", "응답"), ("xlsx:설명", "설명"), ("xlsx:Sheet", "숨김")])
def test_the_first_visible_sheet_is_read_unless_one_is_named(sheets, form, column):
    assert open_table(sheets, form).columns == (column,)


def test_sheets_that_are_not_read_are_said(sheets):
    assert open_table(sheets).notes == ("sheets not read: 2 (Sheet, 설명): sheet names one",)


def test_an_unknown_sheet_is_refused_with_the_others(sheets):
    with pytest.raises(CorpusError, match="no sheet '설며' among Sheet, 응답, 설명: did you mean 설명"):
        open_table(sheets, "xlsx:설며")


def _zipped(path, **parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            with archive.open(name.replace("__", "/") + ".xml", "w", force_zip64=True) as part:
                for block in content:
                    part.write(block)
    return path


def _bomb(path):
    return _zipped(path, xl__workbook=[bytes(1 << 20)] * 300)


def _changed(path, old, new):
    """The parts of a workbook with other bytes."""
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name).replace(old, new) for name in whole.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def _entities(path):
    entities = b'<!DOCTYPE worksheet [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><worksheet'
    _changed(_saved(path.parent, [["글"], ["가"]]), b"<worksheet", entities)


def _below(path):
    _changed(_saved(path.parent, [["글"], ["가"]]), b'<row r="2"', b'<row r="99999999999"')


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_bomb, "holds 314,572,800 bytes of XML, more than 268,435,456: save the table as CSV"),
        (_entities, r"not a whole workbook .* open it in Excel and save it"),
        (_below, "row 1,048,577 is below the last one of Excel"),
        (lambda path: path.write_bytes(b"PK\x03\x04 xl/"), "not a whole workbook .BadZipFile"),
        (lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0"), "is a workbook with a password: save it without one"),
        (lambda path: _zipped(path, word__document=[b"a"]), "is a document of Word: save its text as .txt"),
        (lambda path: _zipped(path, a=[bytes(99)], ppt__presentation=[b"a"]), "is a presentation: save its text"),
        (lambda path: _zipped(path, Contents__a=[b"application/hwp+zip"]), "is a ZIP archive: unpack it"),
        (lambda path: path.write_bytes(b"PK\x03\x04mimetypeapplication/hwp+zip"), "is a document of Hangul .HWPX."),
        (lambda path: _saved(path.parent, []), "the sheet 'Sheet' is empty"),
    ],
)
def test_what_is_no_workbook_is_refused(tmp_path, make, said):
    make(tmp_path / "a.xlsx")
    with pytest.raises(KorbertError, match=said):
        _cells(open_table(tmp_path / "a.xlsx"))


def test_bytes_that_name_a_part_by_chance_make_no_document(tmp_path):
    path = _saved(tmp_path, [["글"], ["word/ ppt/ PPT/"]])
    _changed(path, b"", b"")  # stores it as it is
    assert _cells(open_table(path)) == [["word/ ppt/ PPT/"]]


@pytest.mark.parametrize("name", ["a.xls", "a.doc"])
def test_old_documents_are_refused_by_name(tmp_path, name):
    (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0" + bytes(9))
    with pytest.raises(CorpusError, match=r"is an old .*: save"):
        open_table(tmp_path / name)


def test_a_workbook_is_no_lines(tmp_path):
    with pytest.raises(CorpusError, match="is a workbook of Excel, or another ZIP archive, not csv: save it as CSV"):
        open_table(_saved(tmp_path, [["글"]]), "csv")


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    path = _saved(tmp_path, [["글"], ["가"]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(KorbertError, match=r"an Excel file needs openpyxl: pip install 'korbert\[excel\]'"):
        open_table(path)


TEXTS = [["글", "점수"], ["=1+1", "0.5"], ["\x07종소리\ud800", ""], ["+82", "@이름"]]


def test_texts_are_written_as_texts(tmp_path):
    data, cut = workbook_of(TEXTS)
    (tmp_path / "a.xlsx").write_bytes(data)
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "a.xlsx").active for cell in row]
    assert {cell.data_type for cell in cells if cell.value} <= {"s", "inlineStr"}
    assert cut == 0
    assert _cells(open_table(tmp_path / "a.xlsx")) == TEXTS[1:]


def test_numbers_are_written_as_numbers_unless_excel_would_round_them(tmp_path):
    data, _ = workbook_of([["id", "점수"], [12_345, 0.5], [12_345_678_901_234_567, -1e15]])
    (tmp_path / "a.xlsx").write_bytes(data)
    cells = [[cell.value for cell in row] for row in openpyxl.load_workbook(tmp_path / "a.xlsx").active]
    assert cells[1:] == [[12_345, 0.5], ["12345678901234567", "-1000000000000000.0"]]


def test_a_text_that_excel_cannot_hold_is_cut_and_counted(tmp_path):
    data, cut = workbook_of([["글"], ["가" * 32_768]])
    (tmp_path / "a.xlsx").write_bytes(data)
    assert cut == 1
    assert _cells(open_table(tmp_path / "a.xlsx")) == [["가" * 32_767]]
