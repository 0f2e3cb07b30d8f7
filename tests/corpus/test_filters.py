import pytest

from corpus.documents import Document
from corpus.filters import drop_reason, hangul_share, too_little_hangul, too_short, visible_chars
from corpus.settings import FilterSettings


def document(text):
    return Document("d:1", "d", text)


@pytest.mark.parametrize(
    ("text", "chars", "share"),
    [
        ("", 0, 0),
        (" \n", 0, 0),
        ("한국어 문장.", 6, 5 / 6),
        ("ㅋㅋㅋ 네", 4, 1 / 4),
        ("漢字 abc 😀", 6, 0),
        ("힣가", 2, 1),
    ],
)
def test_measures(text, chars, share):
    assert visible_chars(text) == chars
    assert hangul_share(text) == pytest.approx(share)


@pytest.mark.parametrize(("text", "reason"), [("네 좋아요", None), ("네 네", "too_short"), ("", "too_short")])
def test_too_short(text, reason):
    assert too_short(document(text), min_chars=4) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [("한국어 문장.", None), ("ㅋㅋㅋ 네", "too_little_hangul"), ("English 글", "too_little_hangul")],
)
def test_too_little_hangul(text, reason):
    assert too_little_hangul(document(text), min_share=0.5) == reason


def test_the_first_reason_comes_with_its_measure():
    settings = FilterSettings(min_chars=3, min_hangul_share=0.5)
    assert drop_reason(document("네!"), settings) == ("too_short", "2 visible characters")
    assert drop_reason(document("Hello 네"), settings) == ("too_little_hangul", "Hangul share 0.17")
    assert drop_reason(document("안녕하세요"), settings) is None
