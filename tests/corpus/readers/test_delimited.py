"""CSV and TSV: quotes, line ends in fields, and malformed lines."""

import unicodedata

import pytest
from reading import read

from korbert.errors import CorpusError


def test_csv_quotes_line_ends_and_ids(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffid,본문\r\n1,가\r\n\r\n2,"나, ""다""\n라"\r\n3,"마"'.encode())
    rows = read(path, text="본문")
    assert [(row.id, row.text, row.place) for row in rows] == [
        ("1", "가", "a.csv line 2"),
        ("2", '나, "다"\n라', "a.csv line 4"),
        ("3", "마", "a.csv line 6"),
    ]
    assert [row.id for row in read(path, id="", text="본문")] == ["2", "4", "6"]


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ("2", "bad_fields", "1 fields where the first line has 2"),
        ("2,나,다", "bad_fields", "3 fields where the first line has 2"),
        ('2,"나"다', "bad_quotes", "a quoted field does not end or goes on after its quote, or a carriage return"),
        ('2,"나', "bad_quotes", "a quoted field does not end"),
        (",나", "bad_id", "'id' is a text, not a text or a whole number"),
    ],
)
def test_only_a_malformed_line_is_lost(tmp_path, line, reason, detail):
    path = tmp_path / "a.csv"
    path.write_text(f"id,text\n1,가\n{line}\n3,라\n4,마\n", encoding="utf-8")
    first, wrong, *last = read(path)
    assert [row.id for row in (first, *last)] == ["1", "3", "4"]
    assert (wrong.reason, wrong.text.rstrip("\n")) == (reason, line)
    assert wrong.detail.startswith("a.csv line 3: ")
    assert detail in wrong.detail


def test_quotes_in_tsv_are_detected_or_set_by_the_kind(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('id\ttext\tlabel\n1\t"가\t0\r\n2\t나"다\t1\n3\t라\n', encoding="utf-8")
    rows = read(path)
    assert [(row.id, row.text) for row in rows[:2]] == [("1", '"가'), ("2", '나"다')]
    assert rows[2].reason == "bad_fields"
    path.write_text('id\ttext\n1\t"그는 ""네"" 했다"\n', encoding="utf-8")
    assert [row.text for row in read(path)] == ['그는 "네" 했다']
    assert [row.text for row in read(path, kind="tsv-plain")] == ['"그는 ""네"" 했다"']


@pytest.mark.parametrize("part_bytes", [1, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_header_lines_are_skipped_in_parts_of_any_size(tmp_path, part_bytes, end):
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(["\ufeffsep=;", "", 'id;"te', 'xt"', "", "1;가", '2;"나', ';"', "3;다"]).encode())
    column = {"\r": "te\nxt"}.get(end, f"te{end}xt")
    rows = read(path, part_bytes, text=column)
    assert [(row.id, row.text.split(), row.place) for row in rows] == [
        ("1", ["가"], "a.csv line 6"),
        ("2", ["나", ";"], "a.csv line 7"),
        ("3", ["다"], "a.csv line 9"),
    ]


def test_columns_spelled_in_nfd_are_matched(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(unicodedata.normalize("NFD", "번호;본문") + "\n1;가\n", encoding="utf-8")
    assert [(row.id, row.text) for row in read(path, id="번호", text="본문")] == [("1", "가")]
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "' + unicodedata.normalize("NFD", "본문") + '": "가"}\n', encoding="utf-8")
    assert [(row.id, row.text) for row in read(path, text="본문")] == [(1, "가")]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("id,body", "a.csv: no column 'text' among id, body: set id and text of 's'"),
        ('"id', "a.csv, line 1, which names the columns: a quoted field does not end"),
        ("", "a.csv: no column 'id' among 1, 가: set id and text"),
    ],
)
def test_absent_columns_are_an_error(tmp_path, head, message):
    path = tmp_path / "a.csv"
    path.write_text(head + "\n1,가\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        read(path)
