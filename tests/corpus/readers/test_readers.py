import json
from pathlib import Path
from unicodedata import normalize

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import put, read

from korbert.corpus.corpus_settings import SourceSettings
from korbert.corpus.readers import chunks, rows
from korbert.errors import CorpusError

CSV = '\ufeffid,본문\r\n1,가\r\n\r\n2,"나, ""다""\n라"\r\n3,"마"'
TSV = 'id\ttext\n1\t"그는 ""네"" 했다"\n'
TEXT = "\ufeff첫 줄\r\n둘째 줄\n\n \n셋째 줄\n"
PARAGRAPHS = [{"context": "첫 문단", "qas": []}, {"context": 5, "qas": []}, {"context": "가 \ud83d 나"}]
KORQUAD = {"data": [{"title": "a", "paragraphs": PARAGRAPHS}, {"paragraphs": [{"context": "끝"}]}]}
DUMP = Path(__file__).parent / "wikipedia" / "pages-articles.xml"


@pytest.mark.parametrize(
    ("name", "content", "source", "expected"),
    [
        ("a.csv", CSV, {"text": "본문"},
         [("1", "가", "line 2", None), ("2", '나, "다"\n라', "line 4", None), ("3", "마", "line 6", None)]),
        ("a.csv", CSV, {"id": "", "text": "본문"},
         [("2", "가", "line 2", None), ("4", '나, "다"\n라', "line 4", None), ("6", "마", "line 6", None)]),
        ("a.csv", normalize("NFD", "번호;본문") + "\n1;가\n", {"id": "번호", "text": "본문"},
         [("1", "가", "line 2", None)]),
        ("a.tsv", 'id\ttext\tlabel\n1\t"가\t0\r\n2\t나"다\t1\n3\t라\n', {},
         [("1", '"가', "line 2", None), ("2", '나"다', "line 3", None), (None, "3\t라\n", "line 4", "bad_fields")]),
        ("a.tsv", TSV, {}, [("1", '그는 "네" 했다', "line 2", None)]),
        ("a.tsv", "## 7\t<경찰:OG>은\n경\tB-OG\n찰\tI-OG\n은\tO\n", {}, [("7", "경찰은", "line 1", None)]),
        ("a.tsv", TSV, {"kind": "tsv-plain"}, [("1", '"그는 ""네"" 했다"', "line 2", None)]),
        ("a.jsonl", '\ufeff{"id": "k", "text": "가"}\r\n\n{"id": 7, "text": "\\ud83d\\ude00"}', {},
         [("k", "가", "line 1", None), (7, "😀", "line 3", None)]),
        ("a.jsonl", normalize("NFD", '{"id": 1, "본문": "x"}\n'), {"text": "본문"}, [(1, "x", "line 1", None)]),
        ("a.txt", TEXT, {},
         [("1", "첫 줄\r", "line 1", None), ("2", "둘째 줄", "line 2", None), ("5", "셋째 줄", "line 5", None)]),
        ("a.txt", TEXT, {"documents": "blank"},
         [("1", "첫 줄\r\n둘째 줄", "line 1", None), ("5", "셋째 줄", "line 5", None)]),
        ("a.txt", TEXT, {"documents": "file"}, [("a.txt", TEXT[1:], "", None)]),
        ("dev.json", json.dumps(KORQUAD), {"kind": "korquad", "id": ""},
         [("1", "첫 문단", "context 1", None), ("2", "5", "context 2", "bad_text"),
          ("3", "가 \\ud83d 나", "context 3", "bad_text"), ("4", "끝", "context 4", None)]),
    ],
)  # fmt: skip
def test_rows_of_each_kind_with_their_places(tmp_path, name, content, source, expected):
    found = read(put(tmp_path, name, content), **source)
    assert [(row.id, row.text, row.place.partition(" ")[2], row.reason) for row in found] == expected


def _parquet(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


OTHER = _parquet(body=["가"] * 9)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,body\n1,가\n", "a.csv: no column 'text' among id, body: set id and text of 's'"),
        ("a.csv", '"id\n1,가\n', "a.csv, line 1, which names the columns: a quoted field does not end"),
        ("a.csv", "\n1,가\n", "a.csv: no column 'text' among 1, 가: set id and text"),
        ("a.txt", "나는 학교에 갔다\n".encode("utf-16")[:-1], r"a.txt: is not UTF-16 \(truncated data\)"),
        ("a.json", '[{"id": 1, "text": "가"},\n {"id": 2, "te', r"a.json, line 2: not JSON \(Unterminated string"),
        ("a.parquet", OTHER, r"no column 'text' among body: set id and text of 's'"),
        ("a.parquet", OTHER[:-9], r"a.parquet: not a whole Parquet or Arrow file .*get it again"),
        ("a.dat", b"", r"a.dat: its kind cannot be told from its name: set kind of source 's'"),
        ("a.txt", "가\r나\r", r"a.txt: its lines end as on old Macs, in CR alone: convert it with tr '\\r' '\\n'"),
        ("a.xml", DUMP.read_bytes()[:4_000], r"a.xml: ends inside page \d: the file is cut off, get it again"),
        ("a.xml", "<rss></rss>", r"a.xml: no <page> in there: kind wikipedia is for dumps"),
    ],
)
def test_unusable_files_are_errors(tmp_path, name, content, message):
    with pytest.raises(CorpusError, match=message):
        read(put(tmp_path, name, content))


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
    path = put(tmp_path, "a.json", content, encoding)
    assert [(row.id, row.text, row.place, row.reason) for row in read(path, part_bytes)] == [
        ("a", "가", "a.json record 1", None),
        (None, "3", "a.json record 2", "bad_json"),
        ("b", "나", "a.json record 3", None),
        *([(None, "[1, 2]", "a.json record 4", "bad_json")] if "[1" in content else []),
    ]


def test_a_long_record_of_json_is_dropped(tmp_path):
    path = put(tmp_path, "a.json", json.dumps([{"text": "가" * 99}, {"text": "나"}, {"text": "x\ud800"}]))
    settings = SourceSettings(name="s", path="x", id="")
    records = [row for chunk in chunks(settings, [path], 1, 99) for row in rows(chunk)]
    assert [(row.id, row.reason) for row in records] == [(None, "too_long"), ("2", None), ("3", "bad_text")]
    assert records[2].text == "x\\ud800"  # no file can hold half a surrogate pair


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
    content = b'{"id": "first", "text": "t"}\n' + line + b'\n{"id": "last", "text": "t"}\n'
    first, bad, last = read(put(tmp_path, "a.jsonl", content))
    assert (first.id, last.id) == ("first", "last")
    assert (bad.reason, bad.text) == (reason, line.decode(errors="backslashreplace"))
    assert bad.detail.startswith("a.jsonl line 2: ")
    assert detail in bad.detail


TEXTS = ["가나", "다라"]


@pytest.mark.parametrize(("name", "content", "ids"), [
    ("a.csv", "text\n가나\n다라\n", [2, 3]),
    ("a.tsv", "번호\ttext\n7\t가나\n8\t다라\n", [2, 3]),
    ("a.jsonl", '{"text": "가나"}\n{"text": "다라"}\n', [1, 2]),
    ("a.json", '[{"text": "가나"}, {"text": "다라"}]', [1, 2]),
    ("a.txt", "가나\n다라\n", [1, 2]),
    ("a.parquet", None, [1, 2]),
])  # fmt: skip
def test_a_file_without_ids_gets_numbers(tmp_path, name, content, ids):
    if content is None:
        pq.write_table(pa.table({"text": TEXTS}), tmp_path / name)
    else:
        put(tmp_path, name, content)
    found = read(tmp_path / name)
    assert [row.id for row in found] == [str(number) for number in ids]
    assert [row.text for row in found] == TEXTS


def test_a_record_without_the_id_of_the_others_and_an_id_of_another_name_are_faults(tmp_path):
    path = put(tmp_path, "a.jsonl", '{"id": "x", "text": "가나"}\n{"text": "다라"}\n')
    assert [row.reason for row in read(path)] == [None, "bad_id"]
    assert [row.reason for row in read(path, id="번호")] == ["bad_id", "bad_id"]


def test_ids_of_several_files_name_the_file(tmp_path):
    paths = [tmp_path / "one" / "a.txt", tmp_path / "two" / "a.txt"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("가\n나\n")
    assert [row.id for row in read(paths)] == ["one/a.txt:1", "one/a.txt:2", "two/a.txt:1", "two/a.txt:2"]
    assert len(list(chunks(SourceSettings(name="s", path="x"), paths, 1 << 20))) == 1  # small files share a chunk


def test_ids_of_relative_files_name_their_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [Path("a/x.txt"), Path("b/x.txt")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("가\n")
    assert [row.id for row in read(paths)] == ["a/x.txt:1", "b/x.txt:1"]
    assert [row.place for row in read(paths[0])] == ["x.txt line 1"]


def test_a_file_that_is_one_document_may_have_any_line_ends(tmp_path):
    path = put(tmp_path, "a.txt", "가\r나\r")
    assert [row.text for row in read(path, documents="file")] == ["가\r나\r"]
    with pytest.raises(CorpusError, match="in CR alone"):
        read(path, documents="blank")


HEADER = "id,text,title\n"


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [
        ("a.csv", HEADER.replace("text,title", "title,text") + "1,가,나\n", {}),
        ("a.csv", HEADER.replace(",", ";") + "1,가,나\n", {}),
        ("a.csv", HEADER.replace("id", "번호") + "1,가,나\n", {}),
        ("a.csv", HEADER + "1,가,나\n", {"kind": "text"}),
        ("a.csv", HEADER + "1,가,나\n", {"encoding": "cp949"}),
    ],
)
def test_whatever_decides_the_rows_of_a_chunk_is_in_its_content(tmp_path, name, content, source):
    def contents(files, **settings):
        return [tuple(chunk.content) for chunk in chunks(SourceSettings(name="s", path="x", **settings), files, 1)]

    paths = [put(tmp_path, "a.csv", HEADER + "1,가,나\n"), put(tmp_path, "b.csv", HEADER + "1,가,나\n")]
    before = contents(paths[:1])
    assert contents(paths[:1]) == before
    assert contents(paths)[0] != before[0]  # ids may name the file
    path = put(tmp_path, "a.csv", content)
    assert not {*contents([path], **source)} & {*before}


@pytest.mark.parametrize(("number", "text"), [("5", '"5"'), ("null", '"None"')])
def test_a_cell_of_another_type_is_another_content(tmp_path, number, text):
    source = SourceSettings(name="s", path="x")
    files = [put(tmp_path, f"{cell}.json", f'[{{"id": 1, "text": {cell}}}]') for cell in (number, text)]
    one, other = (next(chunks(source, [file], 1)) for file in files)
    assert list(one.content)[-1] != list(other.content)[-1]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_with_any_type_of_strings(tmp_path, type_):
    texts = pa.array(["가", None, "다"], pa.string()).cast(type_)
    path = put(tmp_path, "a.parquet", _parquet(id=[1, 2, 3], text=texts, other=[0, 0, 0]))
    first, empty, last = read(path, part_bytes=1)
    assert [(row.id, row.text, row.reason) for row in (first, last)] == [(1, "가", None), (3, "다", None)]
    assert (empty.id, empty.text, empty.reason) == (2, "", "bad_text")
    assert empty.detail == "a.parquet row 2: 'text' is missing, not a text"
    assert [row.id for row in read(path, id="")] == ["1", "2", "3"]


def test_undecodable_texts_and_ids_in_parquet_are_dropped(tmp_path):
    undecodable = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"ok"]).buffers())
    (bad, good) = read(put(tmp_path, "a.parquet", _parquet(id=["a", "b"], text=undecodable)))
    assert (bad.text, bad.reason, bad.undecodable, good.text) == ("\\xff", "bad_encoding", 1, "ok")
    (bad, good) = read(put(tmp_path, "a.parquet", _parquet(id=undecodable, text=undecodable)))
    assert (bad.id, bad.text, bad.reason, good.id) == (None, "\\xff", "bad_encoding", "ok")
    (bad, _) = read(put(tmp_path, "a.parquet", _parquet(id=[["a"], ["b"]], text=undecodable)))
    assert (bad.id, bad.text, bad.reason) == (None, "\\xff", "bad_encoding")
    path = put(tmp_path, "a.parquet", _parquet(id=undecodable, text=["가", "나"]))
    assert [(row.id, row.reason) for row in read(path)] == [(None, "bad_id"), ("ok", None)]


def test_all_surrogates_of_a_dropped_text_are_shown(tmp_path):
    (row,) = read(put(tmp_path, "a.json", '[{"id": 1, "text": "\\udcaf 가 \\ud83d"}]'))
    assert (row.id, row.text, row.reason) == (1, "\\xaf 가 \\ud83d", "bad_encoding")


@pytest.mark.parametrize(
    "content", ['{"data": [{"paragraphs": [', '{"id": 1}', "[1, 2]", '{"data": [{"paragraphs": 1}]}']
)
def test_another_json_file_is_a_faulty_row(tmp_path, content):
    (row,) = read(put(tmp_path, "dev.json", content), kind="korquad")
    assert (row.id, row.text, row.reason) == (None, content, "bad_json")
    assert row.detail.startswith("dev.json: not a KorQuAD file")


KOREAN = "나는 학교에 갔다. 똠방각하와 펲시콜라\n둘째 줄은 짧다\n"  # 똠 and 펲 are in CP949 and not in EUC-KR


@pytest.mark.parametrize("declared", ["auto", None])
@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-8", KOREAN), ("cp949", KOREAN), ("euc-kr", "나는 학교에 갔다\n둘째 줄\n"), ("utf-16", KOREAN)],
)
def test_text_is_read_in_each_encoding(tmp_path, encoding, text, declared):
    path = put(tmp_path, "a.txt", text, encoding)
    for part_bytes in (1, 7, 1 << 20):
        rows = read(path, part_bytes, encoding=declared or encoding)
        assert [row.text for row in rows] == text.splitlines()
        assert all(row.reason is None for row in rows)


def test_an_undecodable_line_is_dropped_with_its_bytes_shown(tmp_path):
    data = "첫 줄이다\n".encode("cp949") + b"\xc7\xff\xfe \xeb\n" + "셋째 줄이다\n".encode("cp949")
    first, wrong, last = read(put(tmp_path, "a.txt", data), encoding="cp949")
    assert (first.text, last.text) == ("첫 줄이다", "셋째 줄이다")
    assert (wrong.reason, wrong.undecodable, wrong.text) == ("bad_encoding", 4, r"\xc7\xff\xfe \xeb")
    assert wrong.detail == "a.txt line 2: byte 0xc7 at character 0 is no CP949"
    (surrogate,) = read(put(tmp_path, "a.txt", b"\xed\xb2\x80\n"), encoding="utf-8")
    assert (surrogate.reason, surrogate.undecodable, surrogate.text) == ("bad_encoding", 3, r"\xed\xb2\x80")


def test_half_a_surrogate_pair_in_utf_16_costs_its_own_line(tmp_path):
    data = "첫 줄\n둘째 \ud83d\n셋째 😀\n".encode("utf-16", "surrogatepass")
    first, bad, last = read(put(tmp_path, "a.txt", data))
    assert (first.text, bad.reason, bad.text, last.text) == ("첫 줄", "bad_text", "둘째 \\ud83d", "셋째 😀")
    assert bad.detail == "a.txt line 2: half a surrogate pair at character 3, which is no text"


def test_some_undecodable_lines_do_not_change_the_detected_encoding(tmp_path):
    data = KOREAN.encode() * 20 + "가나다\n".encode("cp949") + b"\xff\xff\xff\n"
    rows = read(put(tmp_path, "a.txt", data))
    assert [row.reason for row in rows] == [None] * 40 + ["bad_encoding"] * 2
    assert [row.undecodable for row in rows[40:]] == [6, 3]


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
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_header_lines_are_skipped_in_parts_of_any_size(tmp_path, part_bytes, end):
    lines = ["\ufeffsep=;", "", 'id;"te', 'xt"', "", "1;가", '2;"나', ';"', "3;다"]
    rows = read(put(tmp_path, "a.csv", end.join(lines)), part_bytes, text=f"te{end}xt")
    assert [(row.id, row.text.split(), row.place) for row in rows] == [
        ("1", ["가"], "a.csv line 6"),
        ("2", ["나", ";"], "a.csv line 7"),
        ("3", ["다"], "a.csv line 9"),
    ]
