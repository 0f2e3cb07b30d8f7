"""Records of CSV lines, whatever their quotes."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.records.csv_records import csv_records
from korbert.records.table import Fault

FIELDS = st.text(st.sampled_from('가a,"\n \r'), max_size=6)


@given(rows=st.lists(st.lists(FIELDS, min_size=2, max_size=3), max_size=6))
def test_what_csv_writes_is_read_again(rows):
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    lines = file.getvalue().splitlines(keepends=True) if "\r" not in file.getvalue() else _lines(file.getvalue())
    records = list(csv_records(iter(lines), 100))
    assert [fields for _, _, fields in records] == rows
    assert "".join(text for _, text, _ in records) == file.getvalue()
    places = [before for before, _, _ in records]
    assert [lines[before:] for before in places] == [lines[sum(map(_count, records[:i])) :] for i in range(len(places))]


def _lines(text):
    """At line feeds alone, as the readers cut lines."""
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def _count(record):
    return record[1].count("\n")


GOOD, BAD, LONG = "a,1\n", '"b" x,2\n', Fault("too_long", "is too long")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([GOOD, BAD, GOOD], [["a", "1"], BAD, ["a", "1"]]),
        (['"open\n', GOOD, BAD, GOOD], ['"open\n', ["a", "1"], BAD, ["a", "1"]]),
        ([GOOD, LONG, GOOD], [["a", "1"], LONG.raw, ["a", "1"]]),
        (['"open\n', LONG, GOOD], ['"open\n', LONG.raw, ["a", "1"]]),
        (["\n", GOOD], [[], ["a", "1"]]),
        (["b" * 50 + ",2\n", GOOD], ["b" * 50 + ",2\n", ["a", "1"]]),
    ],
)
def test_a_mistaken_quote_costs_only_its_own_line(lines, expected):
    """expected: the fields of a record, or the text of its fault."""
    records = list(csv_records((line for line in lines), 40))  # a generator is not closed by a mistake
    assert [before for before, _, _ in records] == [*range(len(lines))]
    assert [text for _, text, _ in records] == ["" if line is LONG else line for line in lines]
    assert [fields.raw if isinstance(fields, Fault) else fields for _, _, fields in records] == expected


def test_lines_are_read_when_they_are_needed():
    asked = []

    def lines():
        for number in range(3):
            asked.append(number)
            yield GOOD

    records = csv_records(lines(), 40)
    next(records)
    assert asked == [0]


def test_the_field_size_limit_of_others_is_kept():
    limit = csv.field_size_limit()
    records = csv_records(iter([GOOD, BAD, GOOD]), 40)
    for _ in records:
        assert csv.field_size_limit() == limit
    assert csv.field_size_limit() == limit
