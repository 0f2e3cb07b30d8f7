"""Lines in bounded memory, as soon as they are there."""

import io

from hypothesis import given
from hypothesis import strategies as st

from korbert.records import lines


@given(st.lists(st.text("가a \r\x85\u2028", max_size=5), max_size=8), st.booleans())
def test_lines_are_those_of_the_file(texts, ended):
    data = ("\n".join(texts) + "\n" * ended).encode()
    found = [line for batch in lines.batches(io.BytesIO(data)) for line in batch]
    assert [line.number for line in found] == [*range(1, len(found) + 1)]
    assert [lines.text_of(line) for line in found] == [line.decode().rstrip("\r\n") for line in io.BytesIO(data)]
