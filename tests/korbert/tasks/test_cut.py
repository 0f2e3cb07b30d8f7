import numpy as np
import pytest

from korbert.tasks.kinds.texts import Groups, examples_of
from korbert.tasks.passages import encode_passages

SHORT, LONG = "좋다", "아주 좋은 영화를 어제 친구와 같이 보았다"


@pytest.mark.parametrize(("rows", "cut"), [
    ([[SHORT], [LONG], [LONG]], 2),
    ([[SHORT, SHORT], [SHORT, LONG], [LONG, LONG]], 2),
])  # fmt: skip
def test_rows_that_lose_pieces_are_counted(tiny_tokenizer, rows, cut):
    texts = [SHORT, LONG]
    encoded = dict(zip(texts, encode_passages(tiny_tokenizer, texts), strict=True))
    length = 7 + len(encoded[SHORT].ids) * 2
    assert examples_of(rows, np.zeros(len(rows)), encoded, tiny_tokenizer, length).cut == cut
    groups = Groups.of([rows], np.zeros(1), encoded, tiny_tokenizer, length)
    assert groups.cut == cut
