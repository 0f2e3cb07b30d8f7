import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.tokenization.alignment import align, trimmed


def slices(text, spans):
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("학교에 간다", ["학교", "##에", "간다"], ["학교", "에", "간다"]),
        ("학교에 간다", ["▁학교", "에", "▁간", "다"], ["학교", "에", "간", "다"]),
        ("학교에 간다", ["▁", "학교에", "▁간다"], ["", "학교에", "간다"]),
        ("학교에 간다", ["학교@@", "에", "간다"], ["학교", "에", "간다"]),
        ("학교에 간다", ["학교", "에</w>", "간다</w>"], ["학교", "에", "간다"]),
        ("학교에 간다", ["학", "##교", "##에", "가", "##ᆫ", "##다"], ["학", "교", "에", "간", "간", "다"]),
        ("Café ＡＢ", ["cafe", "ab"], ["Café", "ＡＢ"]),
        ("Cafe\u0301 간다", ["cafe", "간다"], ["Cafe\u0301", "간다"]),
        ("나\u200b는 👍🏻 좋다", ["나", "##는", "[UNK]", "좋다"], ["나\u200b", "는", "👍🏻", "좋다"]),
        ("뷁 간다", ["[UNK]", "간다"], ["뷁", "간다"]),
        ("간뷁 간", ["[UNK]", "간"], ["간뷁", "간"]),
        ("뷁 쀍 간다", ["[UNK]", "[UNK]", "간다"], ["뷁", "쀍", "간다"]),
        ("뷁쀍 간다", ["[UNK]", "[UNK]", "간다"], ["뷁쀍", "뷁쀍", "간다"]),
        ("간다 뷁", ["간다", "[UNK]"], ["간다", "뷁"]),
        ("간다 뷁, 간다", ["간다", "[UNK]", ",", "간다"], ["간다", "뷁", ",", "간다"]),
        ("간다", ["간", "[UNK]", "##다"], ["간", "", "다"]),
        ("간다 온다", ["없다", "간다", "온다"], ["", "간다", "온다"]),
        ("하나 둘 셋", ["하나", "셋", "둘"], ["하나", "", "둘"]),  # not looked for behind the next word
        ("", ["[UNK]"], [""]),
        ("", [], []),
        ("  \n ", [], []),
    ],
)
def test_pieces_are_found(text, pieces, expected):
    assert slices(text, align(text, pieces, "[UNK]")) == expected


@given(st.text(alphabet="가나다ab .👍\u0301뷁\u200b", max_size=30))
def test_spans_of_words_are_the_words(text):
    words = [word for word in text.split() if any(char not in "\u0301\u200b" for char in word)]
    spans = align(text, words, None)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    for word, (start, end) in zip(words, spans, strict=True):
        assert text[start:end].strip("\u0301\u200b") == word.strip("\u0301\u200b")


@pytest.mark.parametrize(
    ("span", "found"), [((0, 3), (1, 2)), ((1, 2), (1, 2)), ((2, 3), (3, 3)), ((0, 1), (1, 1)), ((0, 0), (0, 0))]
)
def test_white_space_is_cut_off(span, found):
    assert trimmed(" 가 ", *span) == found
