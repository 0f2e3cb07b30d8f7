import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from korbert.records import open_table

CONTENTS = [
    ("text\tlabel\n가\t1\n", "TSV", ("text", "label")),
    ("text\tlabel\n가\t1\n\n\n", "TSV", ("text", "label")),
    ("text,label\n가,1\n", "CSV", ("text", "label")),
    ('{"text": "가", "label": 1}\n{"text": "나"}\n', "JSON lines", ("text", "label")),
    ('[{"text": "가"}, {"label": 1}]', "JSON", ("text", "label")),
    ('{"data": [{"text": "가", "labels": {"label": 1}}]}', "JSON", ("text", "labels", "labels.label")),
    ('{"data":\n [{"text": "가"}]}', "JSON", ("text",)),
    (
        '{"data": [{"title": "가", "paragraphs": [{"context": "나", "qas": [{"id": "1", "question": "다"}]}]}]}',
        "JSON of SQuAD",
        ("title", "context", "id", "question"),
    ),
    ("가 O\n\n나 O\n", "CoNLL", ("tokens", "tags", "1", "2")),
    ("가\tX\tO\n나\tX\tO\n\n나\tX\tO\n", "CoNLL", ("tokens", "tags", "1", "2", "3")),
    ("## 주석\n가\tO\n", "entities of KLUE", ("id", "text", "tokens", "tags", "marked")),
]


ENDINGS = [
    ("a.CSV", "text,label\n", "CSV", ("text", "label")),
    ("a.csv", "text\tlabel\n", "TSV", ("text", "label")),
    ("a.csv", "text\tlabel,x\n", "CSV", ("text\tlabel", "x")),
    ("a.tsv", "text,label\n", "TSV", ("text,label",)),
    ("a.tsv", "## 주석\n가\tO\n", "entities of KLUE", ("id", "text", "tokens", "tags", "marked")),
    ("a.json", '{"text": "가"}\n{"text": "나"}\n', "JSON lines", ("text",)),
    ("a.jsonl", '{"text": "가"}\n', "JSON lines", ("text",)),
    ("a.bio", "가 O\n", "CoNLL", ("tokens", "tags", "1", "2")),
]
WITHOUT = [(name, *case) for name in ("a.txt", "a", "a.data") for case in CONTENTS]


@pytest.mark.parametrize(("name", "content", "form", "columns"), [*WITHOUT, *ENDINGS])
def test_endings_tell_the_format_unless_the_content_differs(tmp_path, name, content, form, columns):
    (tmp_path / name).write_text(content, encoding="utf-8")
    table = open_table(tmp_path / name)
    assert (table.form, table.columns) == (form, columns)


def test_a_given_format_is_used(tmp_path):
    (tmp_path / "a.csv").write_text("가\tO\n나\tO\n", encoding="utf-8")
    assert open_table(tmp_path / "a.csv", "conll").columns == ("tokens", "tags", "1", "2")
    assert open_table(tmp_path / "a.csv", "tsv-plain").columns == ("가", "O")


def test_binary_files_are_known_by_their_first_bytes(tmp_path):
    table = pa.table({"text": ["가"]})
    pq.write_table(table, tmp_path / "one")
    with pa.OSFile(str(tmp_path / "two"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pa.OSFile(str(tmp_path / "three.csv"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert [open_table(tmp_path / name).form for name in ("one", "two", "three.csv")] == ["Parquet", "Arrow", "Arrow"]
