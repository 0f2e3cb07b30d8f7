from unicodedata import is_normalized

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.normalize import normalize
from corpus.settings import NormalizeSettings

ALL = NormalizeSettings()
NONE = NormalizeSettings(control=False, zero_width=False, spaces=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u1112\u1161\u11a8\u1100\u116d에", "학교에"),  # NFD
        ("ㅋㅋㅋ ㅠㅠ", "ㅋㅋㅋ ㅠㅠ"),  # compatibility jamo stay what they are
        ("ＡＢＣ １２３", "ＡＢＣ １２３"),
        ("학\u200b교\u200d에 \ufeff간\u00ad다", "학교에 간다"),
        ("👨\u200d👩\u200d👧 가족", "👨\u200d👩\u200d👧 가족"),  # joiners inside an emoji
        ("가\x00나\x07다\x7f라\x9f마", "가나다라마"),
        ("첫 줄\r\n둘째 줄\r셋째\u2028넷째", "첫 줄\n둘째 줄\n셋째\n넷째"),
        ("  가\t\t나\u3000\u00a0다  \n  라  ", "가 나 다\n라"),
        ("가\n\n\n\n\n나", "가\n\n나"),
        ("\n \t\n", ""),
    ],
)
def test_normalize(text, expected):
    assert normalize(text, ALL) == expected


def test_each_rule_can_be_left_out():
    assert normalize(" 가\x07 \u200b나  다\n\n\n", NONE) == " 가\x07 \u200b나  다\n\n\n"


ODD = st.text(st.sampled_from("가각ㅋ ㅏ\u1100\u1161\u11a8\u200b\u200c\u200d\ufeff\u00ad\u0301a\r\n\t\x00\x85\u3000👨"))


@settings(max_examples=500)
@given(text=ODD | st.text())
def test_twice_is_once_and_nfc(text):
    once = normalize(text, ALL)
    assert normalize(once, ALL) == once
    assert is_normalized("NFC", once)
