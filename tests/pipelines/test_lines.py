"""Texts of arguments and of files of lines, and JSON lines that are written."""

import io

import pytest

from korbert.errors import CorpusError, SettingsError
from pipelines.inference import lines


def test_a_byte_order_mark_is_no_text():
    assert list(lines.texts(io.BytesIO("\ufeff가\n\ufeff나".encode()), "a.txt")) == [
        ("a.txt: line 1", "가"),
        ("a.txt: line 2", "\ufeff나"),
    ]


def test_a_line_that_is_too_long_is_named():
    with pytest.raises(CorpusError, match=r"long\.txt: line 1: is longer than 1,048,576 bytes"):
        list(lines.texts(io.BytesIO(("가" * 7_000_000).encode()), "long.txt"))


def test_lines_that_are_not_utf8_are_named():
    file = io.BytesIO("좋다\n".encode() + "나쁘다\n".encode("cp949"))
    with pytest.raises(CorpusError, match=r"a\.txt: line 2: byte 1 is not UTF-8: .*iconv"):
        list(lines.texts(file, "a.txt"))
    with pytest.raises(SettingsError, match=r"text 2: character 2 is not UTF-8: '\\uac00\\udcb0'"):
        lines.checked(("가", "가\udcb0"))


def test_json_that_utf8_cannot_hold_and_numbers_that_json_has_not():
    assert lines.as_json({"text": "가\ud800"}) == '{"text": "가\\ud800"}'.encode()
    with pytest.raises(ValueError, match="JSON compliant"):
        lines.as_json(float("nan"))
