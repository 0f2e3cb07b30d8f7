import gc
from contextlib import suppress

from korbert.tasks.passages import encode_passages, pieces_of_span, span_of_pieces
from korbert.tokenization.tokenizer_base import collection_paused
from tests.korbert.tasks.answering import passage

FUSED = passage("이걸 봤다", [(0, 2), (1, 2), (3, 4), (3, 4), (4, 5)])  # 이거 ᆯ 보 았 다
EMPTY = passage("그는 의사 다", [(0, 1), (1, 2), (3, 5), (5, 5), (6, 7)])  # 그 는 의사 이 다
TEXTS = ("한글은 1443년에 만들어졌다.", "", "🙂 각하고 걸어갔다\r\n둘째 줄", "lone \ud800 surrogate")


def test_pieces_of_a_span():
    for text, start, end, pieces in (
        (FUSED, 0, 2, (0, 0)),  # 이거 alone covers 이걸
        (FUSED, 1, 2, (0, 0)),
        (FUSED, 3, 5, (3, 4)),  # 보 and 았 are both 봤: one of them will do
        (FUSED, 2, 3, None),  # a space
        (EMPTY, 3, 5, (2, 2)),  # the piece without characters is left out
        (EMPTY, 3, 7, (2, 4)),
        (EMPTY, 0, 7, (0, 4)),
    ):
        assert pieces_of_span(text, start, end) == pieces


def test_the_span_of_pieces():
    def shown(text, first, last):
        return text.text[slice(*span_of_pieces(text.spans, first, last))]

    assert [shown(FUSED, 0, 1), shown(FUSED, 1, 1), shown(FUSED, 2, 4)] == ["이걸", "걸", "봤다"]
    assert [shown(EMPTY, 2, 3), shown(EMPTY, 3, 4), shown(EMPTY, 3, 3)] == ["의사", "다", ""]  # no space before 다
    assert shown(EMPTY, 2, 4) == "의사 다"


def test_spans_cut_the_text_as_given(tiny_tokenizer):
    for text, found in zip(TEXTS, encode_passages(tiny_tokenizer, TEXTS), strict=True):
        assert found.text == text
        assert len(found.ids) == len(found.boundaries) == len(found.spans)
        covered = {place for span in found.spans.tolist() for place in range(*span)}
        assert covered == {place for place, char in enumerate(text) if not char.isspace()}


def test_garbage_collection_is_paused_and_then_as_it_was():
    """Also after an error."""
    for enabled, change in ((False, gc.disable), (True, gc.enable)):
        change()
        with suppress(ZeroDivisionError), collection_paused():
            assert not gc.isenabled()
            raise ZeroDivisionError
        assert gc.isenabled() == enabled
