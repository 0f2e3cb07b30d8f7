"""Lines in bounded memory, as soon as they are there."""

import io
import os
import threading
import tracemalloc
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import CorpusError, SettingsError
from pipelines import lines


@given(st.lists(st.text("가a \r\x85\u2028", max_size=5), max_size=8), st.booleans())
def test_lines_are_those_of_the_file(texts: list[str], ended: bool) -> None:
    data = ("\n".join(texts) + "\n" * ended).encode()
    found = [line for batch in lines.batches(io.BytesIO(data)) for line in batch]
    assert [line.number for line in found] == [*range(1, len(found) + 1)]
    assert [lines.decoded(line) for line in found] == [line.decode().rstrip("\r\n") for line in io.BytesIO(data)]


def test_a_byte_order_mark_is_no_text() -> None:
    assert list(lines.texts(io.BytesIO("\ufeff가\n\ufeff나".encode()), "a.txt")) == [
        ("a.txt: line 1", "가"),
        ("a.txt: line 2", "\ufeff나"),
    ]


def test_a_long_line_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(("가" * 7_000_000 + "\n나\n").encode())
    tracemalloc.start()
    with path.open("rb") as file:
        first, second = chain.from_iterable(lines.batches(file))
    assert tracemalloc.get_traced_memory()[1] < 6 * lines.LONGEST
    tracemalloc.stop()
    assert (first.cut, len(first.data)) == (True, lines.LONGEST)
    assert lines.decoded(first) == "가" * (lines.LONGEST // 3)  # the last one has lost a byte
    assert second == lines.Line(2, "나".encode(), False)
    with (
        path.open("rb") as file,
        pytest.raises(CorpusError, match=r"long\.txt: line 1: is longer than 1,048,576 bytes"),
    ):
        list(lines.texts(file, "long.txt"))


def test_a_slow_writer_sees_what_it_has_written() -> None:
    ours, theirs = os.pipe()
    seen = threading.Event()

    def write() -> None:
        with os.fdopen(theirs, "wb", buffering=0) as pipe:
            pipe.write("가\n나".encode())
            assert seen.wait(60)
            pipe.write("다\n".encode())

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(ours, "rb") as pipe:
        batches = lines.batches(pipe)
        assert [lines.decoded(line) for line in next(batches)] == ["가"]
        seen.set()
        assert [lines.decoded(line) for line in next(batches)] == ["나다"]
    writer.join()


def test_lines_that_are_not_utf8_are_named() -> None:
    file = io.BytesIO("좋다\n".encode() + "나쁘다\n".encode("cp949"))
    with pytest.raises(CorpusError, match=r"a\.txt: line 2: byte 1 is not UTF-8: .*iconv"):
        list(lines.texts(file, "a.txt"))
    with pytest.raises(SettingsError, match=r"text 2: character 2 is not UTF-8: '\\uac00\\udcb0'"):
        lines.checked(("가", "가\udcb0"))


def test_json_that_utf8_cannot_hold_and_numbers_that_json_has_not() -> None:
    assert lines.as_json({"text": "가\ud800"}) == '{"text": "가\\ud800"}'.encode()
    with pytest.raises(ValueError, match="JSON compliant"):
        lines.as_json(float("nan"))
