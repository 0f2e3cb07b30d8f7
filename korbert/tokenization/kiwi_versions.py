"""Sample sentences saved with a tokenizer as pieces, to show the effect of another Kiwi version."""

import json
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

TEXTS = (
    "어제 저녁에 친구를 만나 새로 생긴 국숫집에 갔다.",
    "비가 그치고 나서야 아이들이 골목으로 뛰어나왔다.",
    "이걸 누가 먼저 발견했는지는 아직 밝혀지지 않았습니다.",
    "할머니께서는 된장찌개를 끓이시며 옛날이야기를 들려주셨다.",
    "시험이 끝났으니까 이번 주말에는 푹 쉬어야겠어요.",
    "그 영화는 처음엔 지루했는데 뒤로 갈수록 볼만하더라.",
    "진짜 재밌었음ㅋㅋㅋ 두 번 봐도 안 질림",
    "배우들 연기는 좋았지만 줄거리가 너무 뻔했다ㅠㅠ",
    "돈이 아까워서 끝까지 봤네요... 비추합니다!!",
    "서울특별시는 대한민국의 수도이며 한강이 도시를 가로지른다.",
    "1443년에 창제된 훈민정음은 1446년에 반포되었다.",
    "국립중앙박물관에서는 오는 10월부터 특별전을 연다.",
    "물은 섭씨 100도에서 끓지만 높은 산에서는 더 낮은 온도에서 끓는다.",
    "이 강은 남쪽으로 흐르다가 하구 가까이에서 두 갈래로 나뉜다.",
    "연구진은 세 해 동안 모은 자료를 바탕으로 새로운 모형을 제안하였다.",
    "경제가 나아졌다고들 하는데 시장에 가 보면 꼭 그렇지도 않다.",
    "아버지가 방에 들어가신다.",
    "길을 묻는 사람에게 웃으며 가르쳐 주었다.",
    "누나가 예쁘게 포장해 준 선물을 잃어버려서 속상했다.",
    "버스를 놓치는 바람에 회의에 늦을 뻔했습니다.",
    "그는 대통령에게 편지를 써서 부당함을 알렸다.",
    "파이썬으로 작성한 프로그램을 GPU에서 돌려 보았다.",
    "자세한 내용은 https://example.com/notice 에서 확인하세요.",
    "감자, 양파, 당근을 썰어 넣고 10분쯤 끓인다.",
    "《홍길동전》은 조선 시대의 한글 소설로 알려져 있다.",
    "고양이가 창가에 앉아 졸고 있는 모습이 귀여웠다.",
    "먹을 만큼만 덜어 가시고 남기지 말아 주세요.",
    "선생님의 말씀을 듣고 나니 마음이 한결 가벼워졌다.",
    "우리 팀은 후반전에 두 골을 넣어 3-2로 역전승을 거뒀다.",
    "왜 아무도 나한테 말을 안 해 줬을까?",
    "갔엌ㅋㅋ 그걸 또 믿었넼",
    "漢字와 영어 word가 섞인 문장도 잘라 본다.",
)


class Difference(NamedTuple):
    """pieces: of all sentences, as saved. changed: pieces that differ now. texts: the sentences with such pieces."""

    pieces: int
    changed: int
    texts: list[str]


def recorded(encode: Callable[[str], Sequence[int]]) -> bytes:
    """The content of probe.json. encode: text -> ids, without special tokens."""
    rows = [{"text": text, "ids": list(encode(text))} for text in TEXTS]
    return (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode()


def compared(record: bytes, encode: Callable[[str], Sequence[int]]) -> Difference:
    """How the pieces that `encode` gives differ from the recorded ones."""
    rows = json.loads(record)
    changed, texts = 0, []
    for row in rows:
        now = list(encode(row["text"]))
        if now != row["ids"]:
            same = sum(
                block.size for block in SequenceMatcher(None, row["ids"], now, autojunk=False).get_matching_blocks()
            )
            changed += max(len(row["ids"]), len(now)) - same
            texts.append(row["text"])
    return Difference(sum(len(row["ids"]) for row in rows), changed, texts)
