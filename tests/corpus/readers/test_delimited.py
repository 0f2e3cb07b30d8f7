import pytest
from reading import put, read


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
    first, wrong, *last = read(put(tmp_path, "a.csv", f"id,text\n1,가\n{line}\n3,라\n4,마\n"))
    assert [row.id for row in (first, *last)] == ["1", "3", "4"]
    assert (wrong.reason, wrong.text.rstrip("\n")) == (reason, line)
    assert wrong.detail.startswith("a.csv line 3: ")
    assert detail in wrong.detail


@pytest.mark.parametrize("part_bytes", [1, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_header_lines_are_skipped_in_parts_of_any_size(tmp_path, part_bytes, end):
    lines = ["\ufeffsep=;", "", 'id;"te', 'xt"', "", "1;가", '2;"나', ';"', "3;다"]
    column = {"\r": "te\nxt"}.get(end, f"te{end}xt")
    rows = read(put(tmp_path, "a.csv", end.join(lines)), part_bytes, text=column)
    assert [(row.id, row.text.split(), row.place) for row in rows] == [
        ("1", ["가"], "a.csv line 6"),
        ("2", ["나", ";"], "a.csv line 7"),
        ("3", ["다"], "a.csv line 9"),
    ]
