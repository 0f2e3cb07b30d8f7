import json

import pytest

from korbert.corpus.cleaning.features import Features, batches
from korbert.corpus.cleaning.filters import FILTERS, FRAME, RIGHTS, drop_reasons, page_words
from korbert.corpus.corpus_settings import FilterSettings

PROSE = (
    "조선 후기에는 상업이 발달하면서 장시가 전국으로 퍼졌다. 보부상은 장시를 돌며 물건을 팔았다.\n"
    "정부는 처음에 이를 막으려 했으나, 세금을 거두는 편이 낫다고 여겨 점차 허용하였다.\n"
    "강가에는 포구가 생겨 쌀과 소금, 생선이 모였다. 배로 실어 나르는 상인들은 큰돈을 벌었다.\n"
)

WORDS = [f"{noun}{ending}" for noun in ("강", "산", "들", "바다", "하늘", "길") for ending in "은이을에도와로만"]

CASES = [
    ("네.", "too_short", "2"),
    ("This is English with 한글.", "too_little_hangul", "0.11"),
    ("ㅋㅋㅋㅋㅋ ★★★★☆☆ -_-;; ^^", "too_little_hangul", "0.00"),
    ("영화!!! ★★★★☆☆ ♡♡♡♡ -_-;; ^^", "too_many_symbols", "0.91"),
    ("한글과 漢字를 섞어 漢文을 쓰던 時代의 文書", "mixed_languages", "0.44"),
    ("가" * 260 + " " + "나" * 260, "too_long_words", "260.0"),
    ("오늘은 날씨가 맑다.\n" * 5, "repeated_lines", "0.80"),
    ("정말 좋은 영화 " * 20, "repeated_words", "."),
    (" ".join(WORDS + WORDS[20:35]), "repeated_passages", "."),
    ("이용약관 | 개인정보 처리방침\n회원가입 | 로그인\n기사 본문\n무단 전재 및 재배포 금지", "boilerplate", "0.89"),
    ("서울시\n부산시\n대구시\n인천시\n광주시\n대전시", "list_like", "0.00"),
    ("".join(f"- {word} 가는 길이다.\n" for word in ("학교", "회사", "시장", "공원", "병원")), "bullets", "1.00"),
]


def reasons(*texts, settings=None):
    settings = settings or FilterSettings()
    result = batches(texts, settings.repetition_min_words)
    return [reason for batch, features in result for reason in drop_reasons(batch, features, settings)]


@pytest.mark.parametrize(("text", "reason", "detail"), CASES)
def test_each_filter_drops_with_its_measure(text, reason, detail):
    (result,) = reasons(text)
    assert result[0] == reason
    assert detail in result[1]


@pytest.mark.parametrize(
    "text",
    [
        PROSE, "ㅋㅋㅋㅋㅋ 진짜 재밌다!!! 강추~~", "연기도 좋고 음악도 좋고 다 좋은데 너무 길다ㅠㅠ",
        "최고의영화입니다꼭보세요두번보세요", "띄어쓰기를하지않은긴평입니다" * 10, "넘 좋은...!ㅠㅠㅠㅠ 헐ㅋㅋㅋㅋㅋ",
        "..... 이건 진짜 ..... 명작이다", "영웅님 오늘도 응원합니다~♥️♥️♥️♥️♥️♥️",
        "內面의衝動에 대한 表出을 거침없이 표현한 영화", "BTS의 Dynamite는 2020년 8월 21일에 나온 노래이다.",
        "첫 번째 줄이다\n둘째 줄이다\n", "저작권자들이 보면 열받는 영화겠군", "로그인을 해야 볼 수 있는 영화라니",
        "왠만해선 로그인 안하는데.. 이것도 영화냐 로그인하게 만드네",
        "안젤리나 졸리를 유명하게 만든 영화라는데 이게 어떻게 안젤리나 졸리를 유명하게 만들었는지 모르겠다",
        "이용약관에 동의하고 회원 가입을 한 이용자도 로그인을 할 수 없었으며, 고객센터에 항의가 이어졌다.",
        f"셧다운제는 청소년 보호 정책의 하나이다. 회원 가입과 로그인에 나이를 확인하도록 {' '.join(PROSE.split())} 끝",
    ],
)  # fmt: skip
def test_ordinary_texts_are_kept(text):
    assert reasons(text) == [None]


def test_batches_are_filtered_as_single_texts():
    texts = [text for text, *_ in CASES] * 3 + [PROSE, ""] * 50
    assert reasons(*texts) == [reason for text in texts for reason in reasons(text)]


def test_each_filter_has_a_case_and_can_be_switched_off():
    assert list(dict.fromkeys(reason for _, reason, _ in CASES)) == [each.reason for each in FILTERS]
    shares = ("symbol", "other_script", "repeated_line", "boilerplate", "bullet")
    off = FilterSettings(
        **{f"max_{name}_share": 1 for name in shares},
        **dict.fromkeys(("min_chars", "min_hangul_share", "min_closed_line_share"), 0),
        **dict.fromkeys(("max_word_chars", "repetition_min_words"), 10**9),
    )
    assert set(reasons(*(text for text, *_ in CASES), settings=off)) == {None}
    assert json.loads(off.model_dump_json())["max_top_ngram_shares"] == [0.42, 0.34, 0.28]


def test_a_document_of_more_than_max_chars_is_too_long():
    text = PROSE + "가" * 10_000_000
    assert reasons(text) == [("too_long", str(len(text)))]
    (result,) = reasons(text, settings=FilterSettings(max_chars=20_000_000))
    assert result[0] == "too_long_words"


PAGE_WORDS = (
    "무단 전재|재배포 금지|저작권자 ⓒ|All rights reserved|all Rights|Copyright (c)|copyright 2020|쿠키 정책"
    "|자바스크립트를 켜|개인정보 처리방침|이용약관|청소년보호정책|본문 바로가기|메뉴바로가기|사이트맵|회원가입|로그인"
    "|로그아웃|아이디 찾기|비밀번호찾기|고객센터|이전글|다음 글|목록보기|맨 위로|맨위로|기사제보|구독신청|마이페이지"
    "|카카오톡 공유|페이스북공유|트위터 공유|밴드공유|공유하기|인쇄하기|스크랩|글쓴이 :|작성자:|작성일 :|등록일:"
    "|첨부파일|조회수 3|추천 5|댓글 7|홈 >|홈>|HOME >"
)


def test_page_words_equal_a_plain_search():
    """The two-character beginnings must cover every alternative of the patterns."""
    for phrase in PAGE_WORDS.split("|"):
        features = Features([f"가나 {phrase} 다라\n{phrase}{phrase}"])
        plain = [[match.start() for match in pattern.finditer(features.joined)] for pattern in (RIGHTS, FRAME)]
        assert [result.tolist() for result in page_words(features)] == plain, phrase
        assert any(plain) or phrase == "all Rights", phrase
