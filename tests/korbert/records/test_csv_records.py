"""Records of CSV lines, whatever their quotes."""

import csv

import pytest

from korbert.records.csv_records import csv_records
from korbert.records.table import Fault

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
