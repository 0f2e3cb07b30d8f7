from unicodedata import is_normalized

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.corpus.cleaning.normalize import normalize, normalize_many
from korbert.corpus.corpus_settings import NormalizeSettings

ALL = NormalizeSettings()
NONE = NormalizeSettings(control=False, zero_width=False, spaces=False, html=False, max_repeats=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u1112\u1161\u11a8\u1100\u116d에", "학교에"),  # NFD
        ("ㅋㅋㅋ ㅠㅠ", "ㅋㅋㅋ ㅠㅠ"),  # compatibility jamo stay what they are
        ("ＡＢＣ １２３", "ＡＢＣ １２３"),
        ("학\u200b교\u200d에 \ufeff간\u00ad다", "학교에 간다"),
        ("가\u200e나\u202e다\u2066라\u2069마\ufff9바", "가나다라마바"),
        ("👨\u200d👩\u200d👧 가족", "👨\u200d👩\u200d👧 가족"),  # joiners inside an emoji
        ("가\x00나\x07다\x7f라\x9f마", "가나다라마"),
        ("첫 줄\r\n둘째 줄\r셋째\u2028넷째", "첫 줄\n둘째 줄\n셋째\n넷째"),
        ("  가\t\t나\u3000\u00a0다  \n  라  ", "가 나 다\n라"),
        ("가\n\n\n\n\n나", "가\n\n나"),
        ("\n \t\n", ""),
        (
            "AT&amp;amp;amp;T &quot;가&#44033;&#xAC02;&quot; &unknown; a&lt=1&copy=2",
            'AT&T "가각갂" &unknown; a&lt=1&copy=2',
        ),
        ("&lt;b&gt;굵게&lt;/b&gt;<BR/>둘째 <a href='x' class=y>고리</a> &#x200b;&#7;끝", "굵게\n둘째 고리 끝"),
        ("<p>첫</p><p align=center>둘</p>", "첫\n\n둘"),
        ("<태그>와 a<b && c>d, x <3 y, <b 와>", "<태그>와 a<b && c>d, x <3 y, <b 와>"),
        ("ㅋㅋㅋㅋㅋㅋㅋㅋ ㅠㅠㅠㅠㅠㅠ 와!!!!!!!! ..........", "ㅋㅋㅋㅋㅋ ㅠㅠㅠㅠㅠ 와!!!!! ....."),
        ("아아아아아아아 10000000 aaaaaaaa ㅋㅋㅎㅎㅋㅋㅎㅎ", "아아아아아아아 10000000 aaaaaaaa ㅋㅋㅎㅎㅋㅋㅎㅎ"),
    ],
)
def test_each_rule_of_normalization(text, expected):
    assert normalize(text, ALL) == expected


def test_all_rules_can_be_switched_off():
    dirty = " 가\x07 \u200b나  다<b>&lt;ㅋㅋㅋㅋㅋㅋㅋ\n\n\n"
    assert normalize(dirty, NONE) == dirty


ODD = st.text(st.sampled_from("가각ㅋ ㅏ\u1100\u1161\u11a8\u200b\u200c\u200d\ufeff\u00ad\u0301a\r\n\t\x00\x85\u3000👨"))


PARTS = st.sampled_from(
    ["가", " ", "\n", "&amp;", "amp;", "&lt;", "&gt;", "<", ">", "b", "/b", "br", "&#7;", "ㅋㅋㅋㅋ", "!!!", "=", '"']
)
HTML = st.lists(PARTS, max_size=12).map("".join)


@settings(max_examples=500)
@given(st.lists(ODD | HTML | st.text(st.characters() | st.just("\ufdd0")), max_size=5), st.sampled_from([ALL, NONE]))
def test_batches_are_normalized_as_single_texts_once_and_for_all(texts, chosen):
    alone = [normalize(text, chosen) for text in texts]
    assert list(normalize_many(texts, chosen)) == alone
    assert [normalize(text, chosen) for text in alone] == alone
    assert all(is_normalized("NFC", text) for text in alone)
