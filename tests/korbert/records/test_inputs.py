import bz2
import gzip
import io
import lzma
import os
import threading
import tracemalloc
from dataclasses import replace

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import CorpusError, SettingsError
from korbert.pipelines.inference.input_records import Record, records
from korbert.records import lines, open_table
from korbert.tasks.files import ROLES

KEYS = [replace(ROLES["text"], names=("text", "문장"))]
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def _texts(source, name="<stdin>"):
    batches = records(source, name, "auto", KEYS)
    return [record.error or next(iter(record.fields.values())) for batch in batches for record in batch]


def _results(path):
    return [record.result(KEYS) for batch in records(path, path.name, "auto", KEYS) for record in batch]


@pytest.mark.parametrize(
    ("content", "name", "texts"),
    [
        ("가\n\n나", "a.txt", ["가", "", "나"]), ("[속보] 가\n{나", "a.txt", ["[속보] 가", "{나"]),
        ("가, 나\n다\t라", "a", ["가, 나", "다\t라"]), ("text\tlabel\n가\t1\n", "ratings.txt", ["가"]),
        ("문장,label\n가,1\n", "<stdin>", ["가"]), ("Text\n가\n", "a.csv", ["가"]),
        ("sep=;\ntext;n\n가,나;1\n", "a.csv", ["가,나"]), ("text;n\n가,나;1\n", "a.csv", ["가,나"]),
        ('text\tn\n"그는 ""네"" 했다"\t1\n', "a.tsv", ['그는 "네" 했다']),
        ('[{"text": "가"},\n\n{"text": "나"}]', "a.json", ["가", "나"]),
        ('[{"text": "가"}, {"text": "나"}]', "<stdin>", ["가", "나"]),
        ('{"data": [{"text": "가"}]}', "a.json", ["가"]), ('{"text": "가"}', "a.json", ["가"]),
        ('{\n"text": "가"}\n{"text": "나"}', "<stdin>", ["가", "나"]),
        ('{"text": "가"\n{"text": "나"}', "<stdin>", ["is not JSON", "나"]),
        ('{"text": "가"}\n[1]\n', "<stdin>", ["가", "a list where an object belongs"]),
        ('{"text": "가", "data": "나", "tags": [{"x": 1}]}', "a.json", ["가"]), ("", "a.csv", []),
        ("text\n", "a.csv", []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("packing", ["", *PACK])
def test_a_file_and_a_pipe_of_every_format_are_read_alike(tmp_path, content, name, texts, packing):
    data = PACK.get(packing, bytes)(content.encode())
    path = tmp_path / (name + packing)
    path.write_bytes(data)
    for read in (_texts(path, str(path)), _texts(io.BytesIO(content.encode()), name)):
        assert [line[: len(text)] for line, text in zip(read, texts, strict=True)] == texts


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize(("form", "before"), [("txt", ""), ("csv", "text\n")])
def test_a_pipe_with_a_path_is_read_once(tmp_path, form, before, packing):
    path = tmp_path / f"pipe.{form}{packing}"
    os.mkfifo(path)
    texts = [f"{number} {'가' * 99}" for number in range(9_000)]  # more than the beginning that tells the encoding
    data = PACK.get(packing, bytes)((before + "\n".join(texts)).encode())
    writer = threading.Thread(target=path.write_bytes, args=[data], daemon=True)
    writer.start()
    assert _texts(path, str(path)) == texts
    writer.join()


def test_lines_that_end_in_cr_are_refused(tmp_path):
    (tmp_path / "a.txt").write_bytes("가\r나\r".encode())
    with pytest.raises(CorpusError, match=r"a\.txt: its lines end as on old Macs, in CR alone: convert it with tr"):
        _texts(tmp_path / "a.txt", "a.txt")
    (tmp_path / "a.txt").write_bytes("가\r나\n다".encode())
    assert _texts(tmp_path / "a.txt", "a.txt") == ["가\r나", "다"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv"])
def test_half_a_surrogate_pair_in_utf_16_costs_its_own_line(tmp_path, name):
    before, line = {"a.txt": ("", "{}"), "a.jsonl": ("", '{{"text": "{}"}}'), "a.csv": ("text\n", "{}")}[name]
    content = before + "\n".join(map(line.format, ["가", "나\ud83d", "다😀"]))
    (tmp_path / name).write_bytes(content.encode("utf-16", "surrogatepass"))
    first, bad, last = _results(tmp_path / name)
    assert (first["text"], last["text"]) == ("가", "다😀")
    assert "error" in bad
    (tmp_path / name).write_bytes(content.encode("utf-16", "surrogatepass")[:-1])
    with pytest.raises(CorpusError, match=r"is not UTF-16 \(truncated data\)"):
        _texts(tmp_path / name, name)


def test_a_folder_of_datasets_and_its_parquet_in_a_pipe(tmp_path):
    table = datasets.Dataset.from_dict({"문장": ["가", "나"], "id": ["a", "b"]})
    table.save_to_disk(str(tmp_path / "saved"))
    table.to_parquet(str(tmp_path / "a.parquet"))
    expected = [Record(1, {"문장": "가", "id": "a"}), Record(2, {"문장": "나", "id": "b"})]
    for source in (tmp_path / "saved", tmp_path / "a.parquet", io.BytesIO((tmp_path / "a.parquet").read_bytes())):
        assert [one for part in records(source, "<stdin>", "auto", KEYS) for one in part] == expected


@pytest.mark.parametrize(
    ("data", "name", "error", "said"),
    [
        (b'[{"text": 1},\n{"te', "<stdin>", CorpusError, r"^<stdin>, line 2: not JSON \(Unterminated string"),
        (b"x,y\n1,2\n", "a.csv", SettingsError, r"^a\.csv: no column text among x, y: name it with --text NAME"),
    ],
)
def test_faults_name_the_pipe_and_not_its_copy(data, name, error, said):
    with pytest.raises(error, match=said):
        _texts(io.BytesIO(data), name)


def test_json_lines_answer_as_they_arrive():
    ours, theirs = os.pipe()
    seen = threading.Event()

    def write():
        with os.fdopen(theirs, "wb", buffering=0) as pipe:
            pipe.write('{"text": "가"}\n{"te'.encode())
            assert seen.wait(60)
            pipe.write('xt": "나"}\n'.encode())

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(ours, "rb") as pipe:
        parts = records(pipe, "<stdin>", "auto", KEYS)
        assert [one.fields for one in next(parts)] == [{"text": "가"}]
        seen.set()
        assert [one.fields for part in parts for one in part] == [{"text": "나"}]
    writer.join()


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_a_long_line_of_a_table_is_read_but_for_csv_where_a_quote_may_be_amiss(tmp_path, name):
    row = {"a.jsonl": '{{"text": "{}", "n": 1}}\n', "a.csv": "{},1\n", "a.tsv": "{}\t1\n"}[name]
    head = {"a.jsonl": "", "a.csv": "text,n\n", "a.tsv": "text\tn\n"}[name]
    (tmp_path / name).write_text(head + row.format("가") + row.format("나" * 9_000_000) + row.format("다"), "utf-8")
    cells = [cells for _, cells in open_table(tmp_path / name).read(["text"])]
    assert [cells[0], cells[2]] == [["가"], ["다"]]
    if name == "a.csv":
        assert cells[1][:2] == ("too_long", "is longer than 1,048,576 characters")
    else:
        assert cells[1] == ["나" * 9_000_000]


def test_a_list_of_json_is_read_in_little_memory(tmp_path):
    item = '{"text": "' + "가" * 1_000 + '"}'
    (tmp_path / "a.json").write_text(f"[{','.join([item] * 5_000)}]", "utf-8")
    tracemalloc.start()
    assert sum(cells == ["가" * 1_000] for _, cells in open_table(tmp_path / "a.json").read(["text"])) == 5_000
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


@given(st.lists(st.text("가a \r\x85\u2028", max_size=5), max_size=8), st.booleans())
def test_lines_are_those_of_the_file(texts, ended):
    data = ("\n".join(texts) + "\n" * ended).encode()
    found = [line for batch in lines.batches(io.BytesIO(data)) for line in batch]
    assert [line.number for line in found] == [*range(1, len(found) + 1)]
    assert [line.text for line in found] == [line.decode().rstrip("\r\n") for line in io.BytesIO(data)]


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
    ("a.json", '{"text": "가", "tags": [{"x": 1}]}', "JSON", ("text", "tags")),
    ("a.json", '{\n"text": "가",\n"tags": [{"x": 1}], "spans": [{"y": 1}]}', "JSON", ("text", "tags", "spans")),
    ("a.json", '{"text": "설명", "data": [{"text": "가"}], "n": 1}', "JSON", ("text",)),
    ("a.json", '{"id": "가", "document": [{"text": "가"}]}', "JSON", ("text",)),
    ("a.json", '{\n}\n{"text": "가"}', "JSON", ("text",)),
    ("a.jsonl", '{"text": "가"}\n', "JSON lines", ("text",)),
    ("a.bio", "가 O\n", "CoNLL", ("tokens", "tags", "1", "2")),
]
WITHOUT = [(name, *case) for name in ("a.txt", "a", "a.data") for case in CONTENTS]


@pytest.mark.parametrize(("name", "content", "form", "columns"), [*WITHOUT, *ENDINGS])
def test_endings_tell_the_format_unless_the_content_differs(tmp_path, name, content, form, columns):
    (tmp_path / name).write_text(content, encoding="utf-8")
    table = open_table(tmp_path / name)
    assert (table.form, table.columns) == (form, columns)


@pytest.mark.parametrize(("form", "columns"), [("conll", ("tokens", "tags", "1", "2")), ("tsv-plain", ("가", "O"))])
def test_a_given_format_is_used(tmp_path, form, columns):
    (tmp_path / "a.csv").write_text("가\tO\n나\tO\n", encoding="utf-8")
    assert open_table(tmp_path / "a.csv", form).columns == columns


def test_binary_files_are_known_by_their_first_bytes(tmp_path):
    table = pa.table({"text": ["가"]})
    pq.write_table(table, tmp_path / "one")
    with pa.OSFile(str(tmp_path / "two"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pa.OSFile(str(tmp_path / "three.csv"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert [open_table(tmp_path / name).form for name in ("one", "two", "three.csv")] == ["Parquet", "Arrow", "Arrow"]
