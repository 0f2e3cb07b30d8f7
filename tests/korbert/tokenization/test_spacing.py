"""Text whose spaces tear words apart is analysed without them, with spans in the text as given."""

import random
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.tokenization.repair import MAX_RUN, cut_torn, is_torn

REVIEWS = [
    "정말 재미있는 영화였다!", "배우들 연기가 아까웠다.", "시간이 너무 아깝다는 생각이 든다", "최고의 이야기 10점 만점",
]  # fmt: skip
NATURAL = [
    "이 영화 볼 만하다고 그렇게 말해도 될 것이다", "한 번 더 보고 싶은 영화라고 모두가 이야기한다",
    "특히, 이 정리의 특수한 경우로 다음과 같은 공식을 유도할 수 있다.", "그 사람", "ㅋ ㅋ ㅋ ㅋ ㅋ", "A B C D 1 2 3 4",
    "",
]  # fmt: skip


@pytest.fixture(scope="module")
def analyzer(tiny_tokenizer):
    return tiny_tokenizer.analyzer  # Kiwi is loaded already


def spaced(text):
    """A space between all letters."""
    return " ".join(text.replace(" ", ""))


@pytest.mark.parametrize("text", REVIEWS)
def test_a_space_between_all_letters_changes_no_morpheme(analyzer, text):
    torn, whole = analyzer.analyze(spaced(text)), analyzer.analyze(text.replace(" ", ""))
    assert (torn.forms, torn.tags, torn.sentences) == (whole.forms, whole.tags, whole.sentences)
    assert set(torn.eojeols) == {0}
    for start, end, own_start, own_end in zip(torn.starts, torn.ends, whole.starts, whole.ends, strict=True):
        assert spaced(text)[start:end].replace(" ", "") == text.replace(" ", "")[own_start:own_end]


def test_lines_beside_a_torn_one_are_analysed_as_alone(analyzer):
    analysis = analyzer.analyze(f"앞의 줄이다.\n  {spaced(REVIEWS[0])} \n뒤의 줄이다.")
    outside = [form for form, sentence in zip(analysis.forms, analysis.sentences, strict=True) if sentence != 1]
    assert outside == analyzer.analyze("앞의 줄이다.").forms + analyzer.analyze("뒤의 줄이다.").forms
    assert max(analysis.eojeols) == 4  # two, the torn line, two
    assert max(analysis.sentences) == 2


@pytest.mark.parametrize("text", NATURAL)
def test_natural_spaces_are_kept(text):
    assert not is_torn(text)
    assert is_torn("정 말재 미있 는영화 였 다 또보 고 싶다")


def test_invisible_characters_and_normal_forms_change_nothing(analyzer):
    assert analyzer.analyze("배 우 연 기 짱 " + "\u200b" * 600).forms == analyzer.analyze("배 우 연 기 짱").forms
    decomposed = unicodedata.normalize("NFD", spaced(REVIEWS[0]))
    assert analyzer.analyze(decomposed).forms == analyzer.analyze(spaced(REVIEWS[0])).forms


def test_a_long_torn_line_is_one_eojeol(analyzer):
    text = f"앞 줄\n{'갑 을 ' * 400}\n뒤 줄"
    analysis = analyzer.analyze(text)
    assert max(analysis.eojeols) == 4  # two, the long line, two
    (batch,) = analyzer.analyze_many([text])
    assert batch == analysis


@given(st.lists(st.text("가나다abc. \t\u200b\u1112\u1161", max_size=12), max_size=60), st.integers(0, 9))
def test_any_text_has_spans_in_order_and_batches_agree(analyzer, texts, seed):
    text = " ".join(texts) + "\n" + spaced("".join(texts))
    analysis = analyzer.analyze(text)
    assert all(0 <= start <= end <= len(text) for start, end in zip(analysis.starts, analysis.ends, strict=True))
    assert analysis.eojeols == sorted(analysis.eojeols)
    (batch,) = analyzer.analyze_many([text])
    assert batch == analysis
    shuffled = list(REVIEWS)
    random.Random(seed).shuffle(shuffled)
    assert next(iter(analyzer.analyze_many([text, *shuffled]))) == analysis


@pytest.mark.parametrize("length", [10, MAX_RUN, 5 * MAX_RUN])
def test_torn_lines_are_cut_into_short_parts(length):
    line = spaced("영화가정말재미있었다" * (length // 10))
    parts = list(cut_torn(line))
    assert all(line[begin : begin + len(part)] == part and len(part) <= MAX_RUN for begin, part in parts)
    assert all(begin + len(part) <= other for (begin, part), (other, _) in pairwise(parts))
    assert "".join(part for _, part in parts).replace(" ", "") == line.replace(" ", "")
