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
    passages = [encode_passages(tiny_tokenizer, texts) for texts in rows]
    length = 7 + len(encode_passages(tiny_tokenizer, [SHORT])[0].ids) * 2
    assert examples_of(passages, np.zeros(len(rows)), tiny_tokenizer, length).cut == cut
    groups = Groups.of([passages], np.zeros(1), tiny_tokenizer, length)
    assert groups.cut == cut
