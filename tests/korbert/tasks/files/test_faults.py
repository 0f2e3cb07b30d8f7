"""Every fault of the table in `korbert.tasks.files`: found with file and line, dropped and counted, or refused."""

import gzip
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from korbert.errors import CorpusError, SettingsError
from korbert.tasks.files import ROLES, read_rows
from tests.korbert.tasks.writing import written

TEXT, LABEL, ID = ROLES["text"], ROLES["label"], ROLES["id"]
HEAD = b"text,label\n"
GOOD = "좋다,1\n".encode()


@pytest.mark.parametrize(
    ("name", "content", "reason", "said"),
    [
        ("a.csv", "하나\n", "bad_fields", "line 3: 1 fields where the first line has 2"),
        ("a.csv", "하나,1,0\n", "bad_fields", "line 3: 3 fields where the first line has 2"),
        ("a.csv", '"하나,1\n', "bad_quotes", "line 3: a quoted field does not end"),
        ("a.csv", '"하나" 둘,1\n', "bad_quotes", "line 3: a quoted field does not end or goes on"),
        ("a.csv", " ,1\n", "no_text", "line 3: 'text' is empty"),
        ("a.csv", "하나,\n", "no_label", "line 3: 'label' is empty"),
        ("a.csv", "하\0나,1\n", "bad_text", "line 3: 'text' has a NUL byte at character 1"),
        ("a.csv", b"abc\xff,1\n", "bad_text", "line 3: 'text' has byte 0xff, which its encoding lacks, at character 3"),
        ("a.tsv", "하나\n", "bad_fields", "line 3: 1 fields"),
        ("a.tsv", "\t1\n", "no_text", "line 3: 'text' is empty"),
        ("a.jsonl", '{"text": "하나"\n', "bad_json", "line 2: is not JSON"),
        ("a.jsonl", "[1]\n", "bad_json", "line 2: a list where an object belongs"),
        ("a.jsonl", '{"text": null, "label": 1}\n', "no_text", "line 2: 'text' is empty"),
        ("a.jsonl", '{"label": 1}\n', "no_text", "line 2: 'text' is empty"),
        ("a.jsonl", '{"text": 1.5, "label": 1}\n', "bad_text", "line 2: 'text' is a number with a fraction, not a"),
        ("a.jsonl", '{"text": true, "label": 1}\n', "bad_text", "line 2: 'text' is a truth value, not a text"),
        ("a.jsonl", '{"text": ["가"], "label": 1}\n', "bad_text", "line 2: 'text' is a list, not a text"),
        ("a.jsonl", '{"text": "가\\ud800", "label": 1}\n', "bad_text", "line 2: 'text' has a surrogate at character 1"),
        ("a.jsonl", '{"text": "가", "label": {}}\n', "bad_label", "line 2: 'label' is an object, not a text"),
        ("a.json", ', "가"', "bad_json", "line 2: a text where an object belongs"),
    ],
)
def test_a_fault_of_a_record_drops_it_and_is_counted(tmp_path, name, content, reason, said):
    content = content if isinstance(content, bytes) else content.encode()
    row = json.dumps({"text": "좋다", "label": 1}, ensure_ascii=False).encode() + b"\n"
    before = {"a.csv": HEAD + GOOD, "a.tsv": (HEAD + GOOD).replace(b",", b"\t"), "a.jsonl": row, "a.json": b"[" + row}
    whole = before[name] + content + (b"]" if name == "a.json" else b"")
    rows = read_rows(written(tmp_path, name, whole), [TEXT, LABEL])
    assert rows.rows == [{"text": "좋다", "label": "1"}]
    assert {name: dropped.count for name, dropped in rows.dropped.items()} == {reason: 1}
    assert rows.dropped[reason].first[0].startswith(f"{tmp_path / name}, {said}")
    assert f"dropped 1 as {reason}: " in rows.summary()[1]


@pytest.mark.parametrize(
    ("content", "text"),
    [("NA,1\n", "NA"), ("null,1\n", "null"), ("하나,1,,\n", "하나"), ("12,1\n", "12"), ("하나,1\n\n\n", "하나")],
)
def test_unusual_cells_are_accepted(tmp_path, content, text):
    """Of rows that are dropped all are counted, and three places of a reason are kept."""
    rows = read_rows(written(tmp_path, "a.csv", HEAD + content.encode() + b",1\n" * 5), [TEXT, LABEL])
    assert rows.rows == [{"text": text, "label": "1"}]
    assert {reason: (one.count, len(one.first)) for reason, one in rows.dropped.items()} == {"no_text": (5, 3)}


def test_faults_of_parquet(tmp_path):
    """NaN of pandas is an empty cell, and bytes that are no UTF-8 no text."""
    pd.DataFrame({"text": ["가", None, "나"], "label": [1, 0, None]}).to_parquet(tmp_path / "a.parquet")
    rows = read_rows(tmp_path / "a.parquet", [TEXT, LABEL])
    assert rows.rows == [{"text": "가", "label": "1"}]
    assert sorted(rows.dropped) == ["no_label", "no_text"]
    assert rows.dropped["no_label"].first == [f"{tmp_path / 'a.parquet'}, record 3: 'label' is empty"]
    bad = pa.array([b"ab", b"a\xff"]).view(pa.string())
    pq.write_table(pa.table({"text": bad, "label": ["0", "1"]}), tmp_path / "a.parquet")
    rows = read_rows(tmp_path / "a.parquet", [TEXT, LABEL])
    assert rows.rows == [{"text": "ab", "label": "0"}]
    assert "record 2: 'text' has byte 0xff, which its encoding lacks, at char" in rows.dropped["bad_text"].first[0]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "a.csv: is empty"),
        ("a.csv", b"\xef\xbb\xbf\n", "a.csv: is empty"),
        ("a.txt", b" \n\n", "a.txt: is empty"),
        ("a.csv", HEAD, "a.csv: holds no row"),
        ("a.json", b"[]", "a.json: holds no row"),
        ("a.jsonl", b"text,label\n1,2\n", r"a.jsonl, line 1: is not JSON \(Expecting value"),
        ("a.json", b"[1, 2]", r"a.json, line 1: a number where an object belongs"),
        ("a.csv", HEAD + b",1\n", r"no row can be used: .*0 rows .*dropped 1 as no_text: .*line 2"),
        ("a.csv", b'"text,label\n', "a.csv, line 1, which names the columns: a quoted field"),
        ("a.csv", "text,label\n가,1\n".encode("utf-16-le"), "UTF-16 without its mark: save it as UTF-8"),
        ("a.csv", "text,label\n가,1\n".encode("utf-16")[:-1], "is not UTF-16"),
        ("a.csv.gz", gzip.compress(HEAD + GOOD * 9, mtime=0)[:-9], "ends inside frame 1: the file is cut off"),
        ("a.parquet", b"PAR1abc", "not a whole Parquet or Arrow file"),
        ("a.arrow", b"\xff\xff\xff\xff\x10", "not a whole Parquet or Arrow file"),
        ("a.json", b'[{"text": "a",\n "label": 1}\n {', r"a.json, line 3: not JSON \('{' where a comma or \]"),
        ("a.json", b'[{"text": "a",\n "label": 1},\n {"te', r"a.json, line 3: not JSON \(Unterminated string"),
        ("a.json", b'[{"text": "a", "label": 1}', r"a.json, line 1: not JSON \(the end of the file where"),
        ("a.json", b'{"a": [{}], "b": [{}]}', "a.json: lists of objects at a, b: give"),
        ("a.json", b'{\n"a": 1\n}', "a.json: an object without a list of objects"),
        ("a.csv", b"text,label\r1,2\r", r"a.csv: its lines end as on old Macs, in CR alone: convert it with tr"),
        ("a.json", b'{"a": ', r"a.json, line 1: not JSON \(Expecting value\)"),
        ("a.json", b"3", "a.json: a number without a list"),
        ("a.conll", b"word\n\nword\n", r"one column \('word'\) where token and tag belong"),
        ("a.foo", b"what is this\n", r"neither its ending nor its first line \('what is this'\) tells its format"),
        ("a.csv", b"PK\x03\x04...", "a.csv: is a ZIP archive: unpack it"),
    ],
)
def test_a_fault_of_a_file_refuses_it(tmp_path, name, content, said):
    with pytest.raises(CorpusError, match=said):
        read_rows(written(tmp_path, name, content), [TEXT, LABEL])


def test_missing_files_and_folders(tmp_path):
    for name, form, said in (
        ("trian.csv", "auto", r"trian.csv: no such file: did you mean train.csv\?"),
        ("nowhere/a.csv", "auto", r"nowhere/a.csv: no such file: check its name and folder"),
        ("", "auto", r"is a folder that `datasets` has not saved \(holds train.csv\): give a"),
        ("", "csv", "is a folder, not a file of format csv"),
        (None, "auto", "no row can be used: no file given"),
        ("train.csv", "cvs", r"no format 'cvs' among auto, csv, .*: did you mean csv\?"),
    ):
        written(tmp_path, "train.csv", HEAD + GOOD)
        with pytest.raises((CorpusError, SettingsError), match=said):
            read_rows([] if name is None else tmp_path / name, [TEXT], form=form)


def test_repeated_ids(tmp_path):
    path = written(tmp_path, "a.csv", "id,text\n7,가\n8,나\n7,다\n")
    rows = read_rows(path, [TEXT, ID])
    assert [row["id"] for row in rows] == [None, None, None]
    assert rows.notes == [f"id is not taken as id: id '7' is at {path}, line 2 and at {path}, line 4"]
    with pytest.raises(CorpusError, match=r"id '7' is at .*a.csv, line 2 and at .*a.csv, line 4: name a column"):
        read_rows(path, [TEXT, ID], columns={"id": "id"})
