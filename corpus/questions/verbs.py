"""Endings, particles and verbs of questions. All data.

Tags are Kiwi's; verbs are stems (만들, 개봉하); particles have one form each, that after a consonant (이 for 이 and
가).
"""

from typing import NamedTuple

from corpus.questions.nouns import words

__all__ = [
    "COPULA",
    "DECLARATIVE",
    "FRAMES",
    "INTERROGATIVE",
    "NAMING",
    "NEGATIVE",
    "ONCE",
    "PARTICLES",
    "POSTPOSITIONS",
    "QUOTATIVE",
    "SERIAL",
    "SPLITTING",
    "SYNONYMS",
    "TRANSITIVE",
    "Frame",
]

# Endings. A statement ends in one of these; its register is that of the question.
DECLARATIVE = {
    **dict.fromkeys(words("다 ᆫ다 는다"), "plain"),
    **dict.fromkeys(words("습니다 ᆸ니다"), "formal"),
    **dict.fromkeys(words("어요 에요 지요 죠"), "polite"),
}
# register -> (ending after a verb or 었, after an adjective or 이); the first of plain is the usual one.
INTERROGATIVE = {
    "plain": (("는가", "은가"), ("는가", "은가"), ("는가", "은가"), ("나", "은가"), ("나요", "은가요")),
    "formal": (("습니까", "습니까"),),
    "polite": (("나요", "은가요"),),
}
# 이다 behind a question word, where Kiwi would contract 어디인가 to 어딘가 (somewhere).
COPULA = {"plain": "인가", "formal": "입니까", "polite": "인가요"}
# A clause that ends so can stand alone. True: what follows can, too, so that the clause may be left out.
SPLITTING = {"고": True, "으며": True, "며": True, "지만": True, "으나": True, "나": True, "어": False}
SERIAL = words(
    "앞두 남기 무릅쓰 두 가지 데리 모시 갖 안 업 들 타 하 보 놓 끼 이끌 몰 쥐 메"
)  # 데리고 나가: no boundary
QUOTATIVE = words("다고 ᆫ다고 는다고 라고 이라고 냐고 자고 으냐고 느냐고 다며 ᆫ다며 라며")  # behind what somebody says
NEGATIVE = words("않 못하 아니 없 말 모르 안 못")

# Particles: any form -> the form after a consonant.
PARTICLES = {
    "가": "이",
    "는": "은",
    "를": "을",
    "와": "과",
    "로": "으로",
    "로서": "으로서",
    "로써": "으로써",
    "라고": "이라고",
}

# Verbs that make a particle with the one before them: 에 의해, 에 따라, 을 통해.
POSTPOSITIONS = words("의하 대하 위하 통하 따르 비하 인하 관하 비롯하 비롯되 포함하 제외하 향하 두르 말미암 더불")

# What happens once: when and where of it need not both be in the question.
ONCE = words(
    "태어나 출생하 사망하 별세하 서거하 죽 숨지 전사하 순교하 처형되 창립되 설립되 창단되 창설되 "
    "결성되 건립되 건설되 완공되 준공되 개교하 개통되 개통하 개장하 개관하 "
    "개업하 창간되 개봉하 개봉되 발매되 출시되 출간되 출판되 즉위하 암살되"
)

# Verbs by which things are named: even a single noun is worth a question.
NAMING = words("뜻하 의미하 상징하 가리키 불리 부르 전공하 가르치 명명되 알려지 개칭되 개명하")


class Frame(NamedTuple):
    """What to ask for the noun phrase with this particle before these verbs.

    head: the noun of the other form of the question (…한 곳은 어디인가?); "" for none.
    """

    particle: str
    verbs: str
    word: str
    head: str = ""


FRAMES = (
    # Places
    Frame(
        "에서",
        "태어나 출생하 자라 성장하 사망하 숨지 죽 별세하 서거하 거주하 살 열리 개최되 개최하 개막하 촬영되 촬영하 "
        "근무하 공부하 유학하 체포되 처형되 발견되 발굴되 창립되 창단되 결성되 출발하 발생하 활동하 생활하 출토되 "
        "재배되 생산되 제작되 서식하 치르 치러지 진행되 건조되 개업하 개봉되 즉위하",
        "어디",
        "곳",
    ),
    Frame(
        "에",
        "위치하 자리하 자리잡 거주하 살 도착하 정착하 매장되 묻히 안장되 상륙하 주둔하 서식하 분포하 설치되 "
        "건설되 세우 세워지 설립되 본부하 보관되 소장되 이주하 잠들 배치되 입지하 착륙하 전시되",
        "어디",
        "곳",
    ),
    Frame("으로", "이주하 망명하 이사하 도피하 귀양가 이민하 피신하 유배되 피난하 천도하 이전하 파견되", "어디", "곳"),
    Frame("으로", "이적하 임대되", "어디", "팀"),
    Frame("에", "입단하 합류하 지명되 영입되", "어디", "팀"),
    Frame("에", "입학하 편입하 진학하 재학하", "어느 학교", "학교"),
    Frame("을", "졸업하 중퇴하", "어느 학교", "학교"),
    Frame("에", "소속되 속하 편입되 통합되 합병되 병합되 가입하 입사하 포함되 등재되", "어디"),
    Frame("에", "합격하 참전하 참가하 참여하 출전하", "무엇"),
    # Persons
    Frame(
        "이",
        "작곡하 작사하 집필하 저술하 연출하 감독하 발견하 발명하 편곡하 지휘하 설계하 각색하 창시하 연기하 쓰 "
        "그리 작성하 번역하 암살하 주연하 출연하 제안하 고안하 증명하 취임하 즉위하 당선되 선출되 임명되 부임하 "
        "조각하",
        "누구",
        "사람",
    ),
    Frame("과", "결혼하 혼인하 재혼하 약혼하 이혼하", "누구", "사람"),
    Frame("에게", "시집가 패하 패배하 바치 암살되 사사하 배우 살해되 헌정하 헌정되", "누구", "사람"),
    Frame(
        "에 의해",
        "설립되 창립되 발견되 설계되 발명되 제작되 창설되 건립되 세워지 제안되 고안되 건설되 창단되 임명되 암살되 "
        "살해되 쓰이 작곡되 만들어지 번역되 기술되 명명되 조직되 개발되 창시되 증명되 폐위되 점령되 멸망하 정복되",
        "누구",
    ),
    # Names
    Frame("이라고", "불리 부르 하 일컫 칭하 명명하 알려지 불리우 호칭하", "무엇"),
    Frame("으로", "불리 부르 알려지 명명되 개칭되 개칭하 개명하 변경되 바뀌 개명되 개편되 승격되", "무엇"),
    # Offices, prizes, subjects
    Frame("을", "지내 역임하 겸임하 겸하", "어떤 직책", "직책"),
    Frame("을", "맡", "무엇"),
    Frame("으로", "임명되 취임하 선출되 당선되 부임하 발탁되 추대되 선임되", "어떤 직책", "직책"),
    Frame("을", "수상하", "어떤 상", "상"),
    Frame("을", "전공하 공부하 연구하 가르치", "무엇", "것"),
    # Things
    Frame(
        "을",
        "개발하 발견하 발명하 설립하 창립하 창설하 창단하 결성하 조직하 건설하 건립하 창간하 집필하 저술하 작곡하 "
        "감독하 연출하 출시하 출판하 발매하 제작하 만들 상징하 의미하 뜻하 가리키 함락하 점령하 정복하 멸망시키 "
        "제정하 공포하 제안하 고안하 도입하 생산하 관장하 담당하 운영하 소유하 인수하 합병하 통치하 연주하 번역하 "
        "채택하 체결하 선포하 주장하 원작으로하",
        "무엇",
        "것",
    ),
    Frame(
        "으로",
        "구성되 이루어지 유명하 사용되 쓰이 이용되 지정되 등록되 분류되 선정되 제작되 만들어지 표기하 표현되",
        "무엇",
    ),
    Frame("에서", "유래하 유래되 따오 비롯되 파생되 시작되 기원하", "무엇"),
    Frame("에", "해당하 비유되 사용되 쓰이 이용되 수록되 등장하 출연하", "무엇"),
)


# Verbs that say nothing without an object.
TRANSITIVE = frozenset(verb for frame in FRAMES if frame.particle == "을" for verb in frame.verbs.split()) | words(
    "배급하 디자인하 진행하 명명하 설계하 발표하 제안하 번역하 작성하 편곡하 사용하 이용하 건축하 출간하 판매하 "
    "공개하 수여하 임명하 선출하 기록하 차지하 획득하 얻 받 주 보내 넣 가지 갖 놓 두 짓 세우 열 이기 쓰 그리 "
    "부르 만나 보 듣 읽 찾 잃 떠나 바꾸 옮기 마치 끝내 시작하 담당하 제공하 포함하 지원하 관리하 지휘하 이끌 "
    "통합하 분리하 폐지하 실시하 연기하 조직하 개최하 치르 맞 당하 입 겪 막 지키 죽이 살해하 암살하 체포하 "
    "처형하 공격하 격파하 물리치 방문하 설치하 개통하 수록하 방송하 방영하 편성하 작사하 각색하 기획하 투자하 "
    "달성하 경신하 수립하 추진하 결정하 승인하 거부하 요구하 요청하 선언하 밝히 주도하 추가하 제거하"
)

# Verbs of much the same meaning: another stem -> the stems that it may stand for.
_SAME = {
    "세우": "설립하 건립하 창설하 건국하 창립하",
    "짓": "건설하",
    "세워지": "설립되 건립되 창립되",
    "출생하": "태어나",
    "태어나": "출생하",
    "세상을 떠나": "사망하 별세하 서거하",
    "자리하": "위치하",
    "위치하": "자리하",
    "만들": "제작하",
    "내놓": "출시하",
    "열리": "개최되 개통되",
    "열": "개최하",
    "개최되": "열리",
    "살": "거주하",
    "따내": "획득하",
    "이기": "승리하",
    "이루어지": "구성되",
    "방송되": "방영되",
    "방영되": "방송되",
    "받": "수상하",
    "쓰이": "사용되 이용되",
    "쓰": "사용하 집필하 저술하",
    "출시되": "발매되",
    "출간되": "출판되",
    "출판되": "출간되",
    "펴내": "출판하 출간하",
    "지내": "역임하",
    "담당하": "맡",
    "혼인하": "결혼하",
    "결혼하": "혼인하",
    "뜻하": "의미하",
    "의미하": "뜻하",
    "부르": "칭하",
    "오르": "취임하",
    "끝나": "종료되",
    "없어지": "폐지되",
    "지": "패배하",
    "참여하": "참가하",
    "바뀌": "변경되",
    "바꾸": "변경하",
    "만들어지": "건조되 제작되",
    "들어가": "입단하 입학하",
    "비롯되": "유래하 유래되",
    "첫선을 보이": "데뷔하",
    "속하": "소속되",
    "옮겨 가": "이주하",
    "팀을 옮기": "이적하",
    "나오": "졸업하",
    "일컬어지": "불리",
}
SYNONYMS = {verb: other for other, verbs in _SAME.items() for verb in verbs.split()}
