"""Rows of every kind of file, faulty ones included, and chunks that never cut a record."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from reading import read

from korbert.corpus.readers import chunks, rows
from korbert.corpus.settings import SourceSettings
from korbert.errors import CorpusError


def test_json_lines_are_read_with_their_line_numbers(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "k", "text": "\xea\xb0\x80"}\r\n\n{"id": 7, "text": "\\ud83d\\ude00"}')
    assert [(row.id, row.text, row.place, row.reason) for row in read(path)] == [
        ("k", "가", "a.jsonl line 1", None),
        (7, "😀", "a.jsonl line 3", None),
    ]


@pytest.mark.parametrize("part_bytes", [1, 1 << 20])
@pytest.mark.parametrize(
    "content",
    [
        '[{"id": "a", "text": "가"}, 3, {"id": "b", "text": "나"}, [1, 2]]',
        '[\n  {\n    "id": "a",\n    "text": "가"\n  },\n  3,\n  {"id": "b", "text": "나"}\n]\n',
        '{\n  "id": "a", "text": "가"\n}\n3\n{"id": "b", "text": "나"}',
        '{\n"data": [{"id": "a", "text": "가"}, 3, {"id": "b", "text": "나"}]}',
        '{"data": [{"id": "a", "text": "가"}, 3, {"id": "b", "text": "나"}]}',
        '{"id": "a",\n "text": "가"}\n3\n{"id": "b",\n "text": "나"}\n',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp949"])
def test_json_lists_and_pretty_printed_objects_are_read(tmp_path, content, encoding, part_bytes):
    path = tmp_path / "a.json"
    path.write_text(content, encoding=encoding)
    assert [(row.id, row.text, row.place, row.reason) for row in read(path, part_bytes)] == [
        ("a", "가", "a.json record 1", None),
        (None, "3", "a.json record 2", "bad_json"),
        ("b", "나", "a.json record 3", None),
        *([(None, "[1, 2]", "a.json record 4", "bad_json")] if "[1" in content else []),
    ]


def test_truncated_json_is_an_error_and_a_long_record_is_dropped(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"id": 1, "text": "가"},\n {"id": 2, "te', encoding="utf-8")
    with pytest.raises(CorpusError, match=r"a.json, line 2: not JSON \(Unterminated string"):
        read(path)
    path.write_text(json.dumps([{"text": "가" * 99}, {"text": "나"}, {"text": "x\ud800"}]), encoding="utf-8")
    settings = SourceSettings(name="s", path="x", id="")
    records = [row for chunk in chunks(settings, [path], 1, 99) for row in rows(chunk)]
    assert [(row.id, row.reason) for row in records] == [(None, "too_long"), ("2", None), ("3", "bad_text")]


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b'{"id": "a", "text": "', "bad_json", "Unterminated string"),
        (b"[" * 100_000, "bad_json", "recursion"),
        (b'{"id": 1' + b"0" * 5000 + b"}", "bad_json", "digits"),
        (b'[1, "text"]', "bad_json", "a list where an object belongs"),
        (b'{"id": "a", "text": "\xff\xfe"}', "bad_encoding", "byte 0xff at character 21 is no UTF-8"),
        (b'{"id": "a", "text": 5}', "bad_text", "'text' is a number, not a text"),
        (b'{"id": "a", "text": null}', "bad_text", "'text' is missing"),
        (b'{"id": "a", "text": {"a": []}}', "bad_text", "'text' is an object"),
        (b'{"id": "a"}', "bad_text", "'text' is missing"),
        (b'{"id": "a", "text": "x\\ud800"}', "bad_text", "half a surrogate pair at character 1"),
        (b'{"text": "\xea\xb0\x80"}', "bad_id", "'id' is missing, not a text or a whole number"),
        (b'{"id": true, "text": "\xea\xb0\x80"}', "bad_id", "'id' is a truth value"),
        (b'{"id": 1.5, "text": "\xea\xb0\x80"}', "bad_id", "'id' is a number"),
    ],
)
def test_a_faulty_line_is_a_row_with_reason_and_raw_text(tmp_path, line, reason, detail):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "first", "text": "t"}\n' + line + b'\n{"id": "last", "text": "t"}\n')
    first, bad, last = read(path)
    assert (first.id, last.id) == ("first", "last")
    assert bad.reason == reason
    assert bad.detail.startswith("a.jsonl line 2: ")
    assert detail in bad.detail
    assert bad.text == line.decode(errors="backslashreplace")


def test_text_is_cut_by_line_blank_line_or_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeff첫 줄\r\n둘째 줄\n\n \n셋째 줄\n".encode())
    by_line = read(path)
    assert [(row.id, row.text.strip()) for row in by_line] == [("1", "첫 줄"), ("2", "둘째 줄"), ("5", "셋째 줄")]
    by_blank = read(path, documents="blank")
    assert [(row.id, row.text) for row in by_blank] == [("1", "첫 줄\r\n둘째 줄"), ("5", "셋째 줄")]
    (whole,) = read(path, documents="file")
    assert (whole.id, whole.text) == ("a.txt", "첫 줄\r\n둘째 줄\n\n \n셋째 줄\n")


def test_ids_of_several_files_name_the_file(tmp_path):
    paths = [tmp_path / "one" / "a.txt", tmp_path / "two" / "a.txt"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("가\n나\n")
    assert [row.id for row in read(paths)] == ["one/a.txt:1", "one/a.txt:2", "two/a.txt:1", "two/a.txt:2"]
    assert len(list(chunks(SourceSettings(name="s", path="x"), paths, 1 << 20))) == 1  # small files share a chunk


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_with_any_type_of_strings(tmp_path, type_):
    path = tmp_path / "a.parquet"
    texts = pa.array(["가", None, "다"], pa.string()).cast(type_)
    pq.write_table(pa.table({"id": [1, 2, 3], "text": texts, "other": [0, 0, 0]}), path)
    first, empty, last = read(path, part_bytes=1)
    assert [(row.id, row.text, row.reason) for row in (first, last)] == [(1, "가", None), (3, "다", None)]
    assert (empty.id, empty.text, empty.reason) == (2, "", "bad_text")
    assert empty.detail == "a.parquet row 2: 'text' is missing, not a text"
    assert [row.id for row in read(path, id="")] == ["1", "2", "3"]


def test_a_compressed_arrow_stream_is_read(tmp_path):
    path = tmp_path / "a.arrow.zst"
    sink, table = pa.BufferOutputStream(), pa.table({"id": range(3_000), "text": ["가"] * 3_000})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    path.write_bytes(zstandard.compress(sink.getvalue()))
    assert [(row.id, row.place) for row in read(path, 1)] == [(n, f"a.arrow.zst row {n + 1}") for n in range(3_000)]


def test_undecodable_texts_and_ids_in_parquet_are_dropped(tmp_path):
    path = tmp_path / "a.parquet"
    undecodable = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"ok"]).buffers())
    pq.write_table(pa.table({"id": ["a", "b"], "text": undecodable}), path)
    (bad, good) = read(path)
    assert (bad.text, bad.reason, bad.undecodable, good.text) == ("\\xff", "bad_encoding", 1, "ok")
    pq.write_table(pa.table({"id": undecodable, "text": ["가", "나"]}), path)
    assert [(row.id, row.reason) for row in read(path)] == [(None, "bad_encoding"), ("ok", None)]


def test_unusable_files_are_errors(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": ["가"] * 9}), path)
    with pytest.raises(CorpusError, match=r"no column 'id' among body: set id and text of 's'"):
        read(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CorpusError, match=r"a.parquet: not a whole Parquet or Arrow file .*get it again"):
        read(path)
    with pytest.raises(CorpusError, match=r"a.dat: its kind cannot be told from its name: set kind of source 's'"):
        read(tmp_path / "a.dat")


def test_contexts_of_korquad_are_documents(tmp_path):
    paragraphs = [{"context": "첫 문단", "qas": []}, {"context": 5, "qas": []}, {"context": "가 \ud83d 나"}]
    data = {"version": "1.0", "data": [{"title": "a", "paragraphs": paragraphs}, {"paragraphs": [{"context": "끝"}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(data), "utf-8")
    rows = [(row.id, row.text, row.reason) for row in read(tmp_path / "dev.json", kind="korquad", id="")]
    faulty = [("2", "5", "bad_text"), ("3", "가 \\ud83d 나", "bad_text")]
    assert rows == [("1", "첫 문단", None), *faulty, ("4", "끝", None)]


@pytest.mark.parametrize(
    "content", ['{"data": [{"paragraphs": [', '{"id": 1}', "[1, 2]", '{"data": [{"paragraphs": 1}]}']
)
def test_another_json_file_is_a_faulty_row(tmp_path, content):
    (tmp_path / "dev.json").write_text(content, "utf-8")
    (row,) = read(tmp_path / "dev.json", kind="korquad")
    assert (row.id, row.text, row.reason) == (None, content, "bad_json")
    assert row.detail.startswith("dev.json: not a KorQuAD file")
