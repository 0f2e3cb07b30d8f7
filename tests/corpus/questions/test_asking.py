import pytest

from korbert.corpus.questions.asking import Refused
from korbert.corpus.questions.numbers import has_same_unit

CASES = [
    # 언제: in place without 에, with 부터; at the end by the kind of date
    ("세종은 1443년에 한글을 만들었다.", "1443년", "세종이 한글을 만든 해는 언제인가?"),
    ("세종은 1443년에 한글을 설립하였다.", "1443년", "세종은 언제 한글을 세웠는가?"),
    ("이성계는 기원전 57년에 신라를 건국했다.", "기원전 57년", "이성계가 신라를 세운 해는 언제인가?"),
    ("박지성은 2005년 7월 9일 맨체스터에 입단하였다.", "2005년 7월 9일", "박지성은 언제 맨체스터에 들어갔는가?"),
    ("박지성은 2005년부터 맨체스터에 거주하였다.", "2005년", "박지성은 언제부터 맨체스터에 살았는가?"),
    ("한국은행은 20세기 초에 서울에 설립되었다.", "20세기 초", "한국은행이 서울에 세워진 시기는 언제인가?"),
    # 누구: 누가, 누구와, 누구에 의해; a title becomes 어느
    ("베토벤은 1808년에 빈에서 교향곡을 작곡하였다.", "베토벤", "1808년에 빈에서 교향곡을 작곡한 사람은 누구인가?"),
    ("이순신은 1565년에 상주 방씨와 결혼하였다.", "1565년", "이순신은 언제 상주 방씨와 혼인했는가?"),
    ("이화학당은 메리 스크랜턴에 의해 설립되었다.", "메리 스크랜턴", "이화학당은 누구에 의해 세워졌는가?"),
    ("《기생충》의 주연은 배우 송강호가 맡았다.", "송강호", "《기생충》의 주연은 어느 배우가 담당했는가?"),
    # 어디: by verb and particle; a class noun becomes 어느
    ("윤동주는 북간도 명동에서 태어났다.", "북간도 명동", "윤동주가 태어난 곳은 어디인가?"),
    ("윤동주는 연희전문학교를 졸업했다.", "연희전문학교", "윤동주는 어느 학교를 나왔는가?"),
    ("한라산은 제주도에 위치한다.", "제주도", "한라산은 어디에 자리하는가?"),
    # 무엇: with 을 and 이라고; 어떤
    ("장영실은 세종 때 자격루 물시계를 발명하였다.", "자격루 물시계", "장영실이 세종 때 발명한 것은 무엇인가?"),
    ("뉴욕은 '빅 애플'이라고 불린다.", "빅 애플", "뉴욕은 무엇이라고 일컬어지는가?"),
    ("봉준호는 영화 《기생충》을 제작하였다.", "기생충", "봉준호는 어떤 영화를 만들었는가?"),
    ("김대중은 노벨 평화상을 수상하였다.", "노벨 평화상", "김대중이 수상한 상은 무엇인가?"),
    ("대한민국의 수도는 서울특별시이며, 인구는 약 천만이다.", "서울특별시", "대한민국의 수도는 어디인가?"),
    ("백석의 본명은 백기행이며, 고향은 정주이다.", "백기행", "백석의 본명은 무엇인가?"),
    # 몇, 얼마: the counter stays
    ("아시모프는 22편의 소설을 집필했다.", "22편", "아시모프가 집필한 소설은 몇 편인가?"),
    ("한라산의 높이는 1,950m이며, 제주도의 면적은 1,833km²이다.", "1,950m", "한라산의 높이는 몇 m인가?"),
    ("구글은 320억 달러를 획득하였다.", "320억 달러", "구글은 얼마를 따냈는가?"),
    ("부시는 제43대 대통령을 역임했다.", "제43대", "부시는 제몇 대 대통령을 지냈는가?"),
    # what happens once needs not both when and where
    ("이정구는 1976년 5월 1일 경상북도 군위군에서 출생했다.", "1976년 5월 1일", "이정구가 출생한 날짜는 언제인가?"),
    ("이정구는 1976년 5월 1일 경상북도 군위군에서 출생했다.", "경상북도 군위군", "이정구는 어디에서 태어났는가?"),
    ("고흐는 네덜란드에서 목사와 화가의 장남으로 태어났다.", "네덜란드", "고흐가 태어난 곳은 어디인가?"),
    # other endings, other tenses, clauses before and behind
    ("한라산은 제주도에 위치합니다.", "제주도", "한라산은 어디에 자리합니까?"),
    ("김대중은 노벨 평화상을 수상했어요.", "노벨 평화상", "김대중이 수상한 상은 무엇인가요?"),
    ("이중섭은 평양에서 태어났고, 1956년에 서울에서 사망했다.", "1956년", "이중섭은 언제 서울에서 세상을 떠났는가?"),
    ("이중섭은 평양에서 자라고, 1956년에 서울에서 사망했다.", "평양", "이중섭이 자란 곳은 어디인가?"),
    ("박태준은 대한민국의 기업인으로, 1968년에 포항제철을 설립했다.", "1968년", "박태준은 언제 포항제철을 세웠는가?"),
    # an auxiliary is a word of its own
    ("조선은 1882년에 군란을 진압해야 했다.", "1882년", "조선이 군란을 진압해야 한 해는 언제인가?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer", "question"), CASES)
def test_each_kind_of_question(asker, text, answer, question):
    asked, refused = asker.asked(text)
    assert (answer, question) in asked, (asked, refused, asker.answers(text))


DEFINITIONS = [
    ("서울은 조선 시대부터 이어진 대한민국의 수도이다.", "조선 시대부터 이어진 대한민국의 수도는 어디인가?"),
    ("이미자는 1959년에 데뷔한 한국의 트로트 가수이다.", "1959년에 데뷔한 한국의 트로트 가수는 누구인가?"),
    ("《무녀도》는 1936년에 김동리가 발표한 단편 소설이다.", "1936년에 김동리가 발표한 단편 소설은 무엇인가?"),
    ("김연수는 30년 동안 대구에서 신학을 가르친 목회자이다.", "30년 동안 대구에서 신학을 가르친 목회자는 누구인가?"),
    ("베이징은 1421년에 명나라가 정한 중국의 수도였다.", "1421년에 명나라가 정한 중국의 수도는 어디였는가?"),
    ("세종은 왕이고 이도는 이름이다.", None),
    ("서울은 1394년에 수도가 되었다.", None),
]


@pytest.mark.parametrize(("text", "question"), DEFINITIONS)
def test_definitions_become_questions(asker, text, question):
    answer, asked = asker.defined(text) or ("", None)
    assert asked == question
    assert text.strip("《").startswith(answer)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("시공 당시 동작대교는 대한민국에서 가장 폭이 넓은 다리였다.", "vague_subject"),  # at one time alone
        ("이미자는 대한민국의 가수이다.", "not_the_only_one"),
        ("인천은 대한민국에서 가장 큰 항구 등 도시이다.", "not_the_only_one"),
    ],
)
def test_an_ambiguous_definition_is_refused(asker, text, reason):
    with pytest.raises(Refused, match=reason):
        asker.defined(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("그는 1990년에 서울에서 결혼하였다.", "pronoun"),
        ("이 영화는 1990년에 서울에서 개봉되었다.", "deictic"),
        ("당시 이순신은 1592년에 한산도에 주둔하였다.", "deictic"),
        ("1990년에 서울에서 결혼하였다.", "no_subject"),
        ("인구는 2019년에 3만 명으로 감소하였다.", "vague_subject"),
        ("이순신은 1592년에 한산도를 떠나지 않았다.", "negated"),
        ("이순신은 1592년에 3월 5일 진주에서 출생하였다.", "another_date"),
        ("서울에는 학생이 12명, 부산에는 30명이 있다.", "two_topics"),
        ("1592년에 이순신이 발매하고 원균이 배급하였다.", "no_object"),
        ("닌텐도가 2019년에 게임을 개발하고 배급한 게임은 인기를 얻었다.", "in_relative_clause"),
        ("이순신은 1592년에 전라도에서 승리했고 왕이 기뻐했다고 주장한다.", "quoted_clause"),
        ("금강산은 1998년까지 관광객을 받았다.", "too_close"),
        ("세종은 1443년에 한글을 만들었다.", "only_gap"),  # mostly: matching words would find the answer
        ("김연아는 2014년에 은메달을 메달을 획득하였다.", "two_objects"),
    ],
)
def test_bad_questions_are_refused_with_a_reason(asker, text, reason):
    asked, refused = asker.asked(text)
    assert reason in refused, (asked, refused)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("찰스 1세는 잉글랜드를 통치하였다.", "1세"),  # part of a name
        ("LTS는 2년에 한 번 나온다.", "2년"),  # no date
        ("이것은 4분의 3박자로 구성된다.", "4분"),  # a fraction
        ("헨리에타 리빗은 여자 계산가 중 1명이었다.", "1명"),
        ("70명의 지원자 중, 짐바르도는 심리적으로 안정되고 건강한 24명을 선발했다.", "70명"),
        ("닥농성은 해발 600m에서 700m에 이른다.", "닥농성"),
        ("서울과 부산에서 열렸다.", "부산"),  # one of two
        ("송신소는 서쪽의 산에 있다.", "송신소"),  # looks like a name
        ("속도는 일반적으로 속력이라고 불린다.", "일반적"),
        ("김정희는 고등학교를 졸업했다.", "고등학교"),  # no name
        ("8월 5일 기준 사망자는 3명이었다.", "8월 5일"),
        ("나움은 수도 플리스카에 문예 학교를 설립하였다.", "수도 플리스카에 문예 학교"),  # a particle inside
        ("제사는 제자가 제사를 지냈다.", "제사"),  # no office
        ("군청 소재지는 루블린이지만 도시는 작다.", "루블린이"),  # Kiwi's cut
    ],
)
def test_wrong_candidates_are_no_answers(asker, text, wrong):
    assert wrong not in asker.answers(text)


@pytest.mark.parametrize(
    ("word", "text", "there"),
    [
        ("얼마", "그는 5억 달러를 잃었다", True), ("얼마", "30유로를 냈다", True), ("몇 명", "3만 명이 왔다", True),
        ("몇 명의 학생", "12명이 왔다", True), ("몇 명", "3만 권을 샀다", False),
    ],
)  # fmt: skip
def test_a_second_number_of_the_same_unit_is_detected(word, text, there):
    assert has_same_unit(word, text) == there
