import subprocess
import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.errors import SettingsError
from korbert.tokenization import Analyzer
from korbert.tokenization.repair import MAX_RUN, has_torn_words, split_torn

TEXTS = [
    "학교에 간다.", "", " \n ", "첫 줄이다\n둘째 줄이다. 셋째 문장이다.", "하\u200d교에\r\n갔다", "\ud800",
    "👩\u200d🚀 봤어",
]  # fmt: skip


@pytest.fixture(scope="module")
def analyzer(tiny_tokenizer):
    return tiny_tokenizer.analyzer  # Kiwi is loaded already


@pytest.fixture(scope="module")
def threaded():
    return Analyzer()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\r\n\u3000", []),
        ("\u200b\ufeff", []),
        ("학교에 간다", [("학교", 0, 2), ("에", 2, 3), ("가", 4, 5), ("ᆫ다", 4, 6)]),
        ("이걸 했다", [("이거", 0, 2), ("ᆯ", 1, 2), ("하", 3, 4), ("었", 3, 4), ("다", 4, 5)]),
        ("의사다", [("의사", 0, 2), ("이", 2, 2), ("다", 2, 3)]),
        ("하\u200d교에", [("하교", 0, 3), ("에", 3, 4)]),
        (unicodedata.normalize("NFD", "학교에"), [("학교", 0, 5), ("에", 5, 7)]),
        ("가\r\n나", [("가", 0, 1), ("나", 3, 4)]),
        ("👩\u200d🚀 👍🏽 🇰🇷 𠀀", [("👩\u200d🚀", 0, 3), ("👍🏽", 4, 6), ("🇰🇷", 7, 9), ("𠀀", 10, 11)]),
        ("\ud800 학교", [("\ufffd", 0, 1), ("학교", 2, 4)]),
        ("ㅋㅋㅋ ＡＢ", [("ㅋㅋㅋ", 0, 3), ("ＡＢ", 4, 6)]),
    ],
)
def test_spans_are_of_the_text_as_given(analyzer, text, expected):
    analysis = analyzer.analyze(text)
    morphemes = list(zip(analysis.forms, analysis.starts, analysis.ends, strict=True))
    if text == "가\r\n나":  # the readings are not what this row is about
        morphemes = [(text[start:end], start, end) for _, start, end in morphemes if end > start]
    assert morphemes == expected


def test_morphemes_are_joined_to_words(analyzer):
    assert analyzer.join([("만들", "VV"), ("었", "EP"), ("다", "EF")]) == "만들었다"
    assert analyzer.join([("먹", "VV"), ("어야", "EC"), ("하", "VX", True), ("는가", "EF")]) == "먹어야 하는가"


def test_sentences_and_eojeols_are_counted_through_the_text(analyzer):
    analysis = analyzer.analyze("\n  나는 갔다. 너는\t왔다.\n\n학교 앞")
    assert [analysis.sentences[analysis.forms.index(form)] for form in ("나", "너", "학교", "앞")] == [0, 1, 2, 2]
    starts = [analysis.forms.index(form) for form in ("나", "가", "너", "오", "학교", "앞")]
    assert [analysis.eojeols[start] for start in starts] == [0, 1, 2, 3, 4, 5]
    assert analysis.eojeols == sorted(analysis.eojeols)
    assert len(analysis) == len(analysis.tags) == len(analysis.ends) == len(analysis.sentences) == len(analysis.eojeols)


# 이 alone is a usual word: no line of these counts as torn, whose eojeols are others (below).
@settings(max_examples=50)
@given(st.lists(st.text(st.sampled_from("이a. \n\r\t\u200b\u3000\x1c\x85\ud800🙂"), max_size=12), max_size=4))
def test_white_space_separates_eojeols(analyzer, texts):
    for text, analysis in zip(texts, analyzer.analyze_many(texts), strict=True):
        assert analysis.eojeols == [max(len(text[: start + 1].split()) - 1, 0) for start in analysis.starts]
        assert analysis == analyzer.analyze(text)


def test_a_cut_line_stays_one_sentence_and_a_cut_run_one_eojeol(analyzer):
    analysis = analyzer.analyze("앞 " + "a" * 1500 + " 뒤")
    assert set(analysis.sentences) == {0}
    assert sorted(set(analysis.eojeols)) == [0, 1, 2]
    assert analysis.ends[-1] == 1504


@pytest.mark.parametrize("unit", ["가", "a.", "😀"])
def test_runs_without_spaces_are_analyzed_however_long(analyzer, unit):
    text = unit * (100_000 // len(unit))  # minutes, if Kiwi got it whole
    analysis = analyzer.analyze(text)
    assert analysis.starts[0] == 0
    assert analysis.ends[-1] == len(text)
    assert analysis.starts[1:] == analysis.ends[:-1]


def test_many_texts_are_analyzed_as_one_by_one_on_any_number_of_threads(analyzer, threaded):
    one_by_one = [analyzer.analyze(text) for text in TEXTS * 20]
    assert list(analyzer.analyze_many(TEXTS * 20)) == one_by_one
    assert list(analyzer.analyze_many(TEXTS * 20, workers=1)) == one_by_one
    assert list(threaded.analyze_many(iter(TEXTS * 20), workers=2)) == one_by_one
    with pytest.raises(SettingsError, match="workers -1: say how many threads Kiwi gets"):
        list(analyzer.analyze_many(["학교"], workers=-1))


def test_many_texts_are_read_only_a_little_ahead(threaded):
    taken = 0

    def texts():
        nonlocal taken
        for taken in range(1, 2001):  # noqa: B007
            yield "학교"

    ahead = [taken - done for done, _ in enumerate(threaded.analyze_many(texts(), workers=2), 1)]
    assert len(ahead) == 2000
    assert max(ahead) < 1000


FORKED = """
import multiprocessing, sys
from korbert.tokenization import Analyzer
analyzer, texts = Analyzer(), ["학교에 간다."] * 50
expected = list(analyzer.analyze_many(texts, workers=2))
def child():
    sys.exit(list(analyzer.analyze_many(texts, workers=2)) != expected)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
sys.exit(process.exitcode)
"""


def test_a_forked_process_works_without_the_threads_of_its_parent():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_error_of_the_reader_is_raised(threaded, workers):
    def texts():
        yield "학교"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(threaded.analyze_many(texts(), workers=workers))


REVIEWS = [
    "정말 재미있는 영화였다!", "배우들 연기가 아까웠다.", "시간이 너무 아깝다는 생각이 든다", "최고의 이야기 10점 만점",
]  # fmt: skip
NATURAL = [
    "이 영화 볼 만하다고 그렇게 말해도 될 것이다", "한 번 더 보고 싶은 영화라고 모두가 이야기한다",
    "특히, 이 정리의 특수한 경우로 다음과 같은 공식을 유도할 수 있다.", "그 사람", "ㅋ ㅋ ㅋ ㅋ ㅋ", "A B C D 1 2 3 4",
    "",
]  # fmt: skip


def spaced(text):
    """A space between all letters."""
    return " ".join(text.replace(" ", ""))


@pytest.mark.parametrize("text", REVIEWS)
def test_a_space_between_all_letters_changes_no_morpheme(analyzer, text):
    torn = analyzer.analyze(spaced(text))
    whole = analyzer.analyze(text.replace(" ", ""))
    assert torn.forms == whole.forms
    assert torn.tags == whole.tags
    assert torn.sentences == whole.sentences
    assert set(torn.eojeols) == {0}
    for start, end, own_start, own_end in zip(torn.starts, torn.ends, whole.starts, whole.ends, strict=True):
        assert spaced(text)[start:end].replace(" ", "") == text.replace(" ", "")[own_start:own_end]


def test_lines_around_a_torn_one_are_analysed_as_if_alone(analyzer):
    analysis = analyzer.analyze(f"앞의 줄이다.\n  {spaced(REVIEWS[0])} \n뒤의 줄이다.")
    outside = [form for form, sentence in zip(analysis.forms, analysis.sentences, strict=True) if sentence != 1]
    assert outside == analyzer.analyze("앞의 줄이다.").forms + analyzer.analyze("뒤의 줄이다.").forms
    assert max(analysis.eojeols) == 4  # two, the torn line, two
    assert max(analysis.sentences) == 2


@pytest.mark.parametrize("text", NATURAL)
def test_natural_spaces_are_kept(text):
    assert not has_torn_words(text)
    assert has_torn_words("정 말재 미있 는영화 였 다 또보 고 싶다")


def test_invisible_characters_and_normal_forms_change_nothing(analyzer):
    assert analyzer.analyze("배 우 연 기 짱 " + "\u200b" * 600).forms == analyzer.analyze("배 우 연 기 짱").forms
    decomposed = unicodedata.normalize("NFD", spaced(REVIEWS[0]))
    assert analyzer.analyze(decomposed).forms == analyzer.analyze(spaced(REVIEWS[0])).forms


def test_a_long_torn_line_is_one_eojeol(analyzer):
    text = f"앞 줄\n{'갑 을 ' * 400}\n뒤 줄"
    assert max(analyzer.analyze(text).eojeols) == 4  # two, the long line, two


@given(st.lists(st.text("가나다abc. \t\u200b\u1112\u1161", max_size=12), max_size=60))
def test_any_text_has_spans_in_order(analyzer, texts):
    text = " ".join(texts) + "\n" + spaced("".join(texts))
    analysis = analyzer.analyze(text)
    assert all(0 <= start <= end <= len(text) for start, end in zip(analysis.starts, analysis.ends, strict=True))
    assert analysis.eojeols == sorted(analysis.eojeols)


@pytest.mark.parametrize("length", [10, MAX_RUN, 5 * MAX_RUN])
def test_torn_lines_are_cut_into_short_parts(length):
    line = spaced("영화가정말재미있었다" * (length // 10))
    parts = list(split_torn(line))
    assert all(line[begin : begin + len(part)] == part and len(part) <= MAX_RUN for begin, part in parts)
    assert all(begin + len(part) <= other for (begin, part), (other, _) in pairwise(parts))
    assert "".join(part for _, part in parts).replace(" ", "") == line.replace(" ", "")
