import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from korbert.corpus.documents import sentence_spans
from korbert.corpus.questions.making import Maker, paragraphs
from korbert.corpus.questions.sentences import Sentence, strip_sentence

TEXT = (
    "윤동주(尹東柱, 1917년 12월 30일 ~ )는 일제 강점기의 시인이다. 1938년에 연희전문학교에 입학하였다. "
    "그는 1941년 12월 27일 연희전문학교를 졸업하였다. 이중섭은 1956년 9월 6일 서울 적십자병원에서 사망했다. "
    "본명은 이대향이다. 그 뒤에 많은 사람이 왔다. 베토벤은 1808년에 운명 교향곡을 작곡하였다. "
    "한라산은 제주도에 있는 산으로, 1950년에 국립공원으로 지정되었다. 뉴욕은 '빅 애플'이라고 불린다."
)
SENTENCES = [TEXT[slice(*span)] for span in sentence_spans(TEXT)]


@pytest.mark.parametrize("bound", [1, 3, 100])
def test_each_question_is_on_another_sentence_up_to_the_limit(analyzer, bound):
    made = Maker(analyzer, per_paragraph=bound, seed=0).questions(TEXT)
    assert min(bound, 3) <= len(made) <= bound
    numbers = [next(i for i, sentence in enumerate(SENTENCES) if each.answer in sentence) for each in made]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("윤동주는 시인이다. 1938년에 연희전문학교에 입학하였다.", "1938년", "윤동주"),  # no subject
        ("윤동주는 시인이다. 그는 1938년에 연희전문학교에 입학하였다.", "1938년", "윤동주"),
        ("《기생충》은 유명하다. 이 영화는 2019년 5월 30일 서울에서 개봉하였다.", "2019년 5월 30일", "《기생충》"),
        ("한라산은 화산이다. 높이는 해발 1,950m에 이른다.", "1,950m", "한라산의 높이"),
        ("나도생강은 여러해살이풀로, 원산지는 일본이다.", "일본", "나도생강의 원산지"),
    ],
)
def test_the_topic_of_the_previous_sentence_is_carried_over(analyzer, text, answer, expected):
    """The rest of the paragraph makes it long enough, and says nothing to ask for."""
    paragraph = text + " 많은 사람이 왔다." * 15
    makers = [Maker(analyzer, per_paragraph=9, seed=seed) for seed in range(8)]
    made = [each for maker in makers for each in maker.questions(paragraph)]
    questions = [each.question for each in made if each.answer == answer]
    assert questions
    assert all(expected in question and "그는" not in question for question in questions)


@pytest.mark.parametrize(
    "between", ["그 뒤에 큰 전쟁이 있었다. 1938년에", "송몽규도 1938년에", "그것은 옛 일이다. 1938년에"]
)
def test_a_topic_is_not_carried_over_another(analyzer, between):
    text = f"윤동주는 시인이다. {between} 연희전문학교에 입학하였다." + " 많은 사람이 왔다." * 15
    maker = Maker(analyzer, per_paragraph=9, seed=0)
    assert not [made for made in maker.questions(text) if "윤동주" in made.question]
    assert maker.counts["sentence_all_refused"]


def test_counts_cover_every_sentence(analyzer):
    maker = Maker(analyzer, per_paragraph=3, seed=0)
    assert maker.questions("세종은 1443년에 한글을 만들었다.") == []
    assert maker.counts == {"paragraphs": 1, "paragraph_too_short": 1}
    maker.questions(TEXT)
    counts = maker.counts
    lost = sum(number for name, number in counts.items() if name.startswith("sentence_"))
    assert counts["sentences"] == lost + counts["questions"]
    assert counts["questions"] == sum(number for name, number in counts.items() if name.startswith("question_"))
    assert counts["paragraphs"] == 2


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("세종(世宗, 1397년)은 왕이다.", "세종은 왕이다."), ("세종 (世宗)은 왕이다.", "세종은 왕이다."),
        ("세종（世宗）은 왕[1]이다.", "세종은 왕이다."),
        ("자본금으로 (주)한빛을 세웠다.", "자본금으로 한빛을 세웠다."),
        ("한빛(주)은 한빛 (주) 회사이다.", "한빛은 한빛 회사이다."), ("세종(世宗은 왕이다.", None),
        ("세종은 '왕이다.", None), ("《세종은 왕이다.", None),
    ],
)  # fmt: skip
def test_brackets_are_removed_from_sentences(text, bare):
    sentence = strip_sentence(text, 0, len(text))
    assert (sentence.text if sentence else None) == bare
    if sentence:
        assert "".join(text[offset] for offset in sentence.offsets) == bare


def test_an_answer_with_a_bracket_has_no_span():
    sentence = Sentence(*strip_sentence("윤동주(시인) 기념관", 0, 11), morphs=[])
    assert sentence.span(0, 3) == (0, 3)
    assert sentence.span(0, 7) is None


@given(st.lists(st.text("가나다. \n", max_size=600), max_size=5).map("\n".join))
def test_paragraphs_hold_all_text_within_their_limit(text):
    cut = list(paragraphs(text))
    assert "".join("".join(cut).split()) == "".join(text.split())
    assert all(len(paragraph) <= 1_500 for paragraph in cut)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((250, 1_400), [250, 1_400]),  # together too long
        ((100, 100, 250, 400), [452, 400]),
        ((3_200,), [1_500, 1_500, 200]),
        ((100,), [100]),
    ],
)
def test_short_lines_are_joined_and_long_ones_cut(lengths, expected):
    assert [len(paragraph) for paragraph in paragraphs("\n".join("가" * length for length in lengths))] == expected


PIECES = [*SENTENCES, *"()'《》\n은é\u200b", "그는", "1998년", "12명", "에서", "하였다.", "ㅋㅋ"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=4, max_size=14), seed=st.integers(0, 3))
def test_questions_on_any_text_are_valid(analyzer, pieces, seed):
    text = " ".join(pieces)
    made = Maker(analyzer, per_paragraph=4, seed=seed).questions(text)
    assert made == Maker(analyzer, per_paragraph=4, seed=seed).questions(text)
    assert [each.start for each in made] == sorted(each.start for each in made)
    for question, answer, start, _ in made:
        assert text[start : start + len(answer)] == answer
        assert text.count(answer) == 1
        assert answer not in question
        assert question.endswith("?")
        assert 12 <= len(question) <= 90
        assert not set("()[]{}") & set(question)
