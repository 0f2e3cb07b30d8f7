"""When a quote of a TSV file opens a field, and when it is a character."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.records.delimited import are_quoted
from korbert.tasks.files import ROLES, read_rows

TEXT = ROLES["text"]
LABEL = ROLES["label"]
HEAD = "id\ttext\tlabel\n"


@pytest.mark.parametrize(
    ("lines", "quoted"),
    [
        (["1\t그냥\t0\n"], False),
        (['1\t"인용"\t0\n'], False),  # needs no quotes: a character, or a program that quotes commas
        (['1\t"그는 ""네""라 했다"\t0\n'], True),
        (['1\t"탭\t속"\t0\n'], True),
        (['1\t"두\n', '줄"\t0\n'], True),
        (['1\t"네"라고 했다\t0\n'], False),
        (['1\t그가 "네" 했다\t0\n', '2\t"여는 따옴표만\t0\n'], False),
        (['1\t"여는 따옴표만\t0\n', '2\t닫는 것만"\t0\n'], False),
        (['1\t"그는 ""네""라 했다"\t0\n', '2\t그가 "네" 했다\t0\n', '3\t"""네"" 했다"\t1\n'], True),
        (['1\t"그는 ""네""라 했다"\t0\n', '2\t그가 "네" 했다\t0\n', '3\t"네"라고 했다\t1\n'], False),
        (['1\t""네""\t0\n'], False),
        (['1\t"\t0\n'], False),
        (['1\t"세 칸"이 아니다\n'], False),
    ],
)
def test_each_record_with_a_quote_counts(lines, quoted):
    assert are_quoted([HEAD, *lines]) is quoted


def test_a_quoted_header_decides():
    assert [are_quoted(lines) for lines in (['"id"\n', '"1"\n'], ['id\t"text"\n', '1\t"그냥"\n'], [])] == [
        True,
        False,
        False,
    ]


FIELDS = [st.text(chars, min_size=1) for chars in ('가나"\t ', '가나"\n ')]  # with both, lines may look whole


@given(rows=st.one_of(st.lists(st.tuples(field, field), min_size=1) for field in FIELDS))
def test_what_pandas_would_write_with_a_doubled_quote_is_quoted(rows):
    file = io.StringIO()
    csv.writer(file, delimiter="\t", lineterminator="\n").writerows([("text", "label"), *rows])
    needed = any(char in field for row in rows for field in row for char in '"\t\n')
    assert are_quoted(file.getvalue().splitlines(keepends=True)) is needed


def test_rows_are_read_as_quotes_are_detected(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('text\tlabel\n"여는 따옴표만\t1\n"네"라고 했다\t0\n닫는 것만"\t1\n', encoding="utf-8")
    rows = read_rows(path, [TEXT, LABEL])
    assert [row["text"] for row in rows] == ['"여는 따옴표만', '"네"라고 했다', '닫는 것만"']
    assert rows.sources[0].form == "TSV"
    path.write_text('text\tlabel\n"그는 ""네""\n했다"\t1\n"잘못"된 것\t0\n"또 ""네"""\t0\n', encoding="utf-8")
    limit = csv.field_size_limit()  # of the whole process
    rows = read_rows(path, [TEXT, LABEL])
    assert csv.field_size_limit() == limit
    assert [row["text"] for row in rows] == ['그는 "네"\n했다', '또 "네"']
    assert rows.sources[0].form == "TSV with quoted fields"
    assert rows.dropped["bad_quotes"].count == 1
    plain = read_rows(path, [TEXT, LABEL], form="tsv-plain")
    assert [row["text"] for row in plain] == ['했다"', '"잘못"된 것', '"또 ""네"""']
    assert plain.dropped["bad_fields"].count == 1


def test_unicode_separators_do_not_end_a_line(tmp_path):
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        path = tmp_path / name
        path.write_text(f"text{delimiter}label\n한 줄\u2028두 줄\x85세 줄\x0b{delimiter}1\n", encoding="utf-8")
        assert read_rows(path, [TEXT, LABEL]).rows == [{"text": "한 줄\u2028두 줄\x85세 줄\x0b", "label": "1"}]
