"""Lines in bounded memory, as soon as they are there."""

import io
import tracemalloc
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from korbert.records import lines


@given(st.lists(st.text("가a \r\x85\u2028", max_size=5), max_size=8), st.booleans())
def test_lines_are_those_of_the_file(texts, ended):
    data = ("\n".join(texts) + "\n" * ended).encode()
    found = [line for batch in lines.batches(io.BytesIO(data)) for line in batch]
    assert [line.number for line in found] == [*range(1, len(found) + 1)]
    assert [lines.text_of(line) for line in found] == [line.decode().rstrip("\r\n") for line in io.BytesIO(data)]


def test_a_long_line_is_read_in_little_memory(tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(("가" * 7_000_000 + "\n나\n").encode())
    tracemalloc.start()
    with path.open("rb") as file:
        first, second = chain.from_iterable(lines.batches(file))
    assert tracemalloc.get_traced_memory()[1] < 6 * lines.LONGEST
    tracemalloc.stop()
    assert (first.cut, len(first.data), first.size) == (True, lines.LONGEST, 21_000_000)
    assert lines.text_of(first) == "가" * (lines.LONGEST // 3)  # the last one has lost a byte
    assert second == lines.Line(2, "나".encode(), 3)
