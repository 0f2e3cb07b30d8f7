"""Old Korean text: CP949, EUC-KR and UTF-16, declared or detected, and undecodable bytes."""

import json

import pytest

from corpus.readers import chunks, rows
from corpus.settings import SourceSettings
from korbert.errors import CorpusError

TEXT = "나는 학교에 갔다. 똠방각하와 펲시콜라\n둘째 줄은 짧다\n"  # 똠 and 펲 are in CP949 and not in EUC-KR


def read(path, part_bytes=1 << 20, **source):
    settings = SourceSettings(name="s", path="x", **source)
    return [row for chunk in chunks(settings, [path], part_bytes) for row in rows(chunk)]


def write(tmp_path, data, name="a.txt"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("declared", ["auto", None])
@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-8", TEXT), ("cp949", TEXT), ("euc-kr", "나는 학교에 갔다\n둘째 줄\n"), ("utf-16", TEXT)],
)
def test_text_in_each_encoding(tmp_path, encoding, text, declared):
    path = write(tmp_path, text.encode(encoding))
    for part_bytes in (1, 7, 1 << 20):
        found = read(path, part_bytes, encoding=declared or encoding)
        assert [row.text for row in found] == text.splitlines()
        assert all(row.reason is None for row in found)


def test_json_in_cp949(tmp_path):
    line = json.dumps({"id": 1, "text": "한글"}, ensure_ascii=False)
    assert [row.text for row in read(write(tmp_path, line.encode("cp949"), "a.jsonl"))] == ["한글"]


def test_a_broken_line_is_dropped_with_its_bytes_shown_and_counted(tmp_path):
    data = "첫 줄이다\n".encode("cp949") + b"\xc7\xff\xfe \xeb\n" + "셋째 줄이다\n".encode("cp949")
    first, wrong, last = read(write(tmp_path, data), encoding="cp949")
    assert (first.text, last.text) == ("첫 줄이다", "셋째 줄이다")
    assert (wrong.reason, wrong.undecodable, wrong.text) == ("bad_encoding", 4, r"\xc7\xff\xfe \xeb")
    assert wrong.detail == "a.txt line 2: byte 0xc7 at character 0 is no CP949"


def test_some_broken_lines_do_not_make_another_encoding_of_it(tmp_path):
    data = TEXT.encode() * 20 + "가나다\n".encode("cp949") + b"\xff\xff\xff\n"
    found = read(write(tmp_path, data))
    assert [row.reason for row in found] == [None] * 40 + ["bad_encoding"] * 2
    assert [row.undecodable for row in found[40:]] == [6, 3]


def test_utf16_that_is_cut(tmp_path):
    with pytest.raises(CorpusError, match=r"a.txt: is not UTF-16 \(truncated data\)"):
        read(write(tmp_path, TEXT.encode("utf-16")[:-1]))


def test_a_sequence_of_bytes_that_is_a_surrogate_is_no_utf8(tmp_path):
    (row,) = read(write(tmp_path, b"\xed\xb2\x80\n"), encoding="utf-8")
    assert (row.reason, row.undecodable, row.text) == ("bad_encoding", 3, r"\xed\xb2\x80")
