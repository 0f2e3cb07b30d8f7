"""Texts of arguments and of files of lines, and JSON lines that are written."""

import io

import pytest

from pipelines.inference import lines


def test_a_byte_order_mark_is_no_text():
    assert list(lines.texts(io.BytesIO("\ufeff가\n\ufeff나".encode()), "a.txt")) == [
        ("a.txt: line 1", "가"),
        ("a.txt: line 2", "\ufeff나"),
    ]


def test_json_that_utf8_cannot_hold_and_numbers_that_json_has_not():
    assert lines.as_json({"text": "가\ud800"}) == '{"text": "가\\ud800"}'.encode()
    with pytest.raises(ValueError, match="JSON compliant"):
        lines.as_json(float("nan"))
