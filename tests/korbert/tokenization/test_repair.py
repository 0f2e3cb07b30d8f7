import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.tokenization.repair import repair, split_line

CHARS = [
    *"가각A1é漢\uf900 ㅋㅏᆫ"
    "\u1100\u1161\u11a8\u0301\u0323\u0308\u0344\u0958\u0dd9\u0dca\u0dcf\u200b\u200d\ufeff\u2800\ud800👩🏽"
]


@pytest.mark.parametrize("text", ["", "학교에 간다.", "ㅋㅋㅋ ＡＢＣ ½", "가\tb\r", "👍🏽 🇰🇷 ❤️ 𠀀", "\u00a0\u3000"])
def test_fit_text_is_left_alone(text):
    assert repair(text) is None


@pytest.mark.parametrize(
    ("text", "expected", "spans"),
    [
        ("하\u200d교", "하교", [(0, 1), (2, 3)]),
        ("\ufeff가\u00ad나", "가나", [(1, 2), (3, 4)]),
        ("a\ud800b", "a\ufffdb", [(0, 1), (1, 2), (2, 3)]),
        ("가\u2800나\x1c", "가 나 ", [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ("\u1112\u1161\u11a8\u1100\u116d", "학교", [(0, 3), (3, 5)]),
        ("하\u11a8교", "학교", [(0, 2), (2, 3)]),
        ("\u1112\u200b\u1161", "하", [(0, 3)]),
        ("e\u0323\u0301x", "ẹ\u0301x", [(0, 2), (2, 3), (3, 4)]),
        ("\uf900", "豈", [(0, 1)]),
        ("\u0958x", "\u0915\u093cx", [(0, 1), (0, 1), (1, 2)]),  # one character becomes two
        ("👩\u200d🚀", "👩\u200d🚀", None),
        ("❤\ufe0f\u200d🔥 하\u200d교", "❤\ufe0f\u200d🔥 하교", None),
        ("하\u200d👩", "하👩", [(0, 1), (2, 3)]),
        ("\u200b\u200c", "", []),
    ],
)
def test_text_is_repaired_with_its_spans(text, expected, spans):
    repaired = repair(text)
    assert repaired is not None
    assert repaired.text == expected
    assert all(start == end for start, end in (repaired.span(place, place) for place in range(len(expected))))
    if spans is not None:
        assert [repaired.span(place, place + 1) for place in range(len(expected))] == spans


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(CHARS), max_size=12).map("".join))
def test_repaired_text_is_nfc_and_its_spans_are_in_order(text):
    repaired = repair(text)
    if repaired is None:
        assert unicodedata.is_normalized("NFC", text)
        return
    assert unicodedata.is_normalized("NFC", repaired.text)
    assert not any("\ud800" <= char <= "\udfff" for char in repaired.text)
    spans = [repaired.span(place, place + 1) for place in range(len(repaired.text))]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


GLYPHS = [*"가각é", "\u1100\u1161", "\u1100\u1161\u11a8", "e\u0301\u0323"]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(GLYPHS), max_size=8).map("".join))
def test_repaired_text_is_the_nfc_of_the_whole(text):
    repaired = repair(text)
    assert (text if repaired is None else repaired.text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("line", "lengths"),
    [
        ("학교에 간다", [6]), ("", [0]), ("가" * 500, [500]), ("가" * 1200, [500, 500, 200]),
        ("앞 " + "a" * 600 + " 뒤", [2, 500, 100, 2]), ("가나다 " * 5000, [10_000, 10_000]),
    ],
)  # fmt: skip
def test_long_lines_are_cut(line, lengths):
    parts = list(split_line(line))
    assert [len(part) for _, part in parts] == lengths
    assert "".join(part for _, part in parts) == line
    assert all(line[begin : begin + len(part)] == part for begin, part in parts)


@pytest.mark.parametrize("cluster", ["\u1112\u1161\u11ab", "e\u0301\u0323", "👩🏽\u200d🚀", "❤\ufe0f\u200d🔥"])
def test_runs_are_cut_between_characters(cluster):
    parts = [part for _, part in split_line(cluster * 1000)]
    assert len(parts) > 1
    assert all(part.startswith(cluster) and part.endswith(cluster) for part in parts)
