"""What other programs write in each format and encoding comes back as rows, with every record accounted for."""

import csv
import io
import json
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import CorpusError
from korbert.records import is_empty
from korbert.tasks.files import ROLES, read_rows, refuse_unseen_labels

TEXT, LABEL, ID = ROLES["text"], ROLES["label"], ROLES["id"]
KOREAN = "가힣ㅋ \t\n\r,\"'\\|#a1[]{}:;"
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
FILLED = st.one_of(st.text(KOREAN, min_size=1), ANY).filter(lambda text: not is_empty(text))
LABELS = st.sampled_from(["긍정", "부정", "0", "1", "a,b", 'c"d'])
ROWS = st.lists(st.tuples(FILLED, LABELS), min_size=1, max_size=8)
CP949 = st.text('가힣똠방각하 \n,"ab', min_size=1).filter(lambda text: not text.isspace())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


def _read(path):
    rows = read_rows(path, [TEXT, LABEL])
    assert not rows.dropped
    return [(row["text"], row["label"]) for row in rows]


def _csv(rows, delimiter, quoting, end):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows([("text", "label"), *rows])
    return file.getvalue()


@given(
    rows=ROWS,
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
    delimiter=st.sampled_from([",", "\t"]),
)
def test_what_csv_writes_is_read_again(folder, rows, encoding, quoting, end, delimiter):
    path = folder / ("a.csv" if delimiter == "," else "a.tsv")
    path.write_bytes(_csv(rows, delimiter, quoting, end).encode(encoding))
    assert _read(path) == rows


@given(rows=st.lists(st.tuples(CP949, LABELS), min_size=1, max_size=8))
def test_cp949_is_found(folder, rows):
    path = folder / "old.csv"
    rows = [("첫 줄은 우리말이라야 안다", "긍정"), *rows]
    path.write_bytes(_csv(rows, ",", csv.QUOTE_ALL, "\r\n").encode("cp949"))
    assert _read(path) == rows
    assert read_rows(path, [TEXT, LABEL]).sources[0].encoding == "cp949"


@given(rows=ROWS, ascii_only=st.booleans(), encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_what_json_writes_is_read_again(folder, rows, ascii_only, encoding):
    objects = [{"text": text, "label": label} for text, label in rows]
    dumps = partial(json.dumps, ensure_ascii=ascii_only)
    lines = "".join(dumps(row) + "\n" for row in objects)
    whole = {"lines.jsonl": lines, "list.json": dumps(objects), "indented.json": dumps(objects, indent=2)}
    whole |= {"data.json": dumps({"version": "1", "data": objects})} | ({"lines.json": lines} if len(rows) > 1 else {})
    for name, content in whole.items():
        (folder / name).write_bytes(content.encode(encoding))
        assert _read(folder / name) == rows, name


def test_what_pandas_writes_is_read_as_pandas_has_it(tmp_path):
    columns = {
        "번호": [1, 2],
        "문장": ['그는 "네"라고\n말했다', "NA"],
        "label": [1.0, 0.0],
        "tags": [["O"], ["B", "I"]],
    }
    table = pd.DataFrame(columns)
    table.to_csv(tmp_path / "a.csv", index=False, encoding="utf-8-sig")
    table.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    table.to_json(tmp_path / "a.json", orient="records", force_ascii=False)
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    table.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.tsv", "a.json", "a.jsonl", "a.parquet"):
        rows = read_rows(tmp_path / name, [TEXT, LABEL, ID, ROLES["tags"]])
        found = [(row["id"], row["text"], float(row["label"]), row["tags"]) for row in rows]
        assert found == [("1", table["문장"][0], 1, ["O"]), ("2", "NA", 0, ["B", "I"])], name


def test_rows_know_their_places(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\n\n"두\n줄",1\n하나,0\n', encoding="utf-8")
    objects = '[{"document": "하나", "label": 0},\n\n{"document": "둘", "label": 1}]'
    (tmp_path / "b.json").write_text(objects, encoding="utf-8")
    pd.DataFrame({"text": ["셋", "넷"], "label": ["0", "1"]}).to_parquet(tmp_path / "c.parquet")
    rows = read_rows([tmp_path / name for name in ("a.csv", "b.json", "c.parquet")], [TEXT, LABEL])
    places = [f"a.csv, line {line}" for line in (3, 5)] + [f"b.json, line {line}" for line in (1, 3)]
    places += [f"c.parquet, record {record}" for record in (1, 2)]
    assert list(map(str, rows.places)) == [f"{tmp_path}/{place}" for place in places]
    assert [rows.places[-6], *rows.places[-2:]] == [rows.places[0], rows.places[4], rows.places[5]]
    with pytest.raises(IndexError):
        rows.places[6]
    assert rows.columns == {"text": ("text",), "label": ("label",)}
    assert (
        rows.summary()[1] == f"{tmp_path / 'b.json'}: 2 rows (JSON in UTF-8; text from 'document', label from 'label')"
    )


def test_labels_unseen_in_training_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\n하나,기쁨\n둘,슬픔\n셋,슬픔\n", encoding="utf-8")
    rows = read_rows(tmp_path / "a.csv", [TEXT, LABEL])
    refuse_unseen_labels(rows, ["슬픔", "기쁨"])
    with pytest.raises(CorpusError, match=r"'슬픔' 2 times, first at .*a.csv, line 3: known are 기쁨: correct them"):
        refuse_unseen_labels(rows, ["기쁨"])
    # Optional roles are None where nothing stands.
    (tmp_path / "a.csv").write_text("text,label\n하나,\n둘,1\n", encoding="utf-8")
    rows = read_rows(tmp_path / "a.csv", [TEXT, replace(LABEL, required=False), ROLES["id"]])
    assert rows.rows == [{"text": "하나", "label": None, "id": None}, {"text": "둘", "label": "1", "id": None}]
    assert not rows.dropped
