import pytest
from reading import put, read

TEXT = "나는 학교에 갔다. 똠방각하와 펲시콜라\n둘째 줄은 짧다\n"  # 똠 and 펲 are in CP949 and not in EUC-KR


@pytest.mark.parametrize("declared", ["auto", None])
@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-8", TEXT), ("cp949", TEXT), ("euc-kr", "나는 학교에 갔다\n둘째 줄\n"), ("utf-16", TEXT)],
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


def test_some_undecodable_lines_do_not_change_the_detected_encoding(tmp_path):
    data = TEXT.encode() * 20 + "가나다\n".encode("cp949") + b"\xff\xff\xff\n"
    rows = read(put(tmp_path, "a.txt", data))
    assert [row.reason for row in rows] == [None] * 40 + ["bad_encoding"] * 2
    assert [row.undecodable for row in rows[40:]] == [6, 3]
