import json

from hypothesis import given
from hypothesis import strategies as some

from korbert.corpus.pairs import pairs_of

FIRST = "농업은 흙을 이용하여 식물을 가꾸고 가축을 기르는 활동이다. 가장 먼저 발달한 산업이다. 이제 크게 짓는다."
SECOND = "105,000년 전부터 야생 곡물을 거둔 흔적이 있다. 쌀은 중국에서 먼저 재배했다고 하나 한국의 볍씨가 더 오래다."
LAW = "청구인은 상속 개시를 안 날부터 세 달 안에 한정승인을 신고하여야 하고, 이 기간은 법원이 결정으로 늘릴 수 있다."


def test_titles_headings_and_sentences():
    assert [(pair.query, pair.source) for pair in pairs_of("", f"{LAW}\n# 머리말\n{LAW}")] == [("머리말", "headings")]
    made = list(pairs_of("농업", f"{FIRST}\n짧은 줄이다.\n역사.\n{SECOND}\n{LAW}\n【이유】\n{LAW}"))
    pairs = [(pair.query, pair.passage) for pair in made if pair.source != "sentences"]
    assert pairs == [("농업", FIRST), ("농업 역사", SECOND), ("농업 이유", LAW)]
    (cloze,) = [pair for pair in made if pair.source == "sentences"]
    assert cloze.query in FIRST
    assert len(cloze.query) + 1 + len(cloze.passage) == len(FIRST)


@given(some.text("가나다. 역사\n【】#", max_size=300), some.text(max_size=20))
def test_passages_are_of_the_text(text, title):
    for pair in pairs_of(title, text):
        assert pair.query != pair.passage
        assert pair.source == "sentences" or (pair.passage in text and len(pair.passage) >= 60)


def test_the_command(tmp_path, command):
    corpus = tmp_path / "corpus.jsonl"
    output = tmp_path / "pairs.jsonl"
    documents = [{"제목": "농업", "text": f"{FIRST}\n역사.\n{SECOND}"}, {"제목": 3, "text": SECOND}]
    corpus.write_text("\n".join(json.dumps(document) for document in documents), encoding="utf-8")
    pairs = ["pairs", corpus, "--output", output, "--title", "제목"]
    assert "pairs.jsonl: 1 titles, 1 headings, " in command(*pairs).err
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [row["query"] for row in rows if row["source"] != "sentences"] == ["농업", "농업 역사"]
    command(*pairs, code=2)  # the file is there, and nothing in it says that it is ours
    output.unlink()
    corpus.write_text('{"text": "짧다"}', encoding="utf-8")
    assert "corpus.jsonl: holds no pairs" in command(*pairs, code=2).err
