import copy
import hashlib
import json

import pytest

from korbert.durable import write_json
from korbert.errors import CorpusError
from korbert.tasks import korquad

CONTEXT = "세종은 1443년에 한글을 만들었다.\r\n🙂 그것은 훈민정음이다."


def question(id="q1", text="1443년", start=4, asked="한글은 언제 만들어졌나?"):
    return {"id": id, "question": asked, "answers": [{"text": text, "answer_start": start}]}


def document(*qas, title="한글", context=CONTEXT):
    paragraph = {"context": context, "qas": list(qas or [question()])}
    return {"version": "KorQuAD_v1.0_train", "data": [{"title": title, "paragraphs": [paragraph]}]}


def write(folder, value, name="train.json"):
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def test_read_counts_code_points(tmp_path):
    start = CONTEXT.index("훈민정음")
    dataset = korquad.read(write(tmp_path, document(question(), question("q2", "훈민정음", start))))
    assert dataset.contexts == (CONTEXT,)
    assert dataset.titles == ("한글",)
    assert [q.answers for q in dataset.questions] == [
        (korquad.Answer("1443년", 4),),
        (korquad.Answer("훈민정음", start),),
    ]
    assert dataset.questions[1].answers[0].span == (start, start + 4)


def test_read_takes_a_byte_order_mark(tmp_path):
    assert len(korquad.read(write(tmp_path, "\ufeff" + json.dumps(document()))).questions) == 1


def test_read_without_answers_needs_none(tmp_path):
    qas = {"id": "q1", "question": "누구인가?"}
    assert korquad.read(write(tmp_path, document(qas)), answers="none").questions[0].answers == ()


def test_a_title_may_be_absent(tmp_path):
    value = document()
    del value["data"][0]["title"]
    assert korquad.read(write(tmp_path, value)).titles == ("",)


def change(value, path, new):
    """A copy of a JSON value with another value at the path; `...` removes the key."""
    value = copy.deepcopy(value)
    node = value
    for step in path[:-1]:
        node = node[step]
    if new is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = new
    return value


PARAGRAPH = ("data", 0, "paragraphs", 0)
QUESTION = (*PARAGRAPH, "qas", 1)
TWO = document(question(), question("q2"))


@pytest.mark.parametrize(
    ("path", "new", "message"),
    [
        (("data",), ..., r'train.json: no "data" there'),
        (("data",), {}, r'train.json: "data" is an object and should be a list'),
        (("data", 0), "글", r"train.json: data\[0\]: a string where an object should be"),
        (("data", 0, "title"), 3, r'data\[0\]: "title" is a whole number and should be a string'),
        (("data", 0, "paragraphs"), None, r'data\[0\]: "paragraphs" is null and should be a list'),
        ((*PARAGRAPH, "context"), ..., r'data\[0\].paragraphs\[0\]: no "context" there'),
        ((*PARAGRAPH, "qas"), ..., r'data\[0\].paragraphs\[0\]: no "qas" there'),
        ((*QUESTION, "id"), ..., r'data\[0\].paragraphs\[0\].qas\[1\]: no "id" there'),
        ((*QUESTION, "id"), 7, r'qas\[1\]: "id" is a whole number and should be a string'),
        ((*QUESTION, "question"), None, r'qas\[1\]: "question" is null and should be a string'),
        ((*QUESTION, "answers"), [], r"qas\[1\]: question q2 has no answer"),
        ((*QUESTION, "answers", 0, "text"), ..., r'qas\[1\].answers\[0\]: no "text" there'),
        (
            (*QUESTION, "answers", 0, "answer_start"),
            "4",
            r'answers\[0\]: "answer_start" is a string and should be a whole',
        ),
        ((*QUESTION, "answers", 0, "answer_start"), True, r'"answer_start" is bool and should be a whole number'),
        ((*QUESTION, "answers", 0, "answer_start"), 5, r"question q2: the context has '443년에' at answer_start 5"),
        ((*QUESTION, "answers", 0, "answer_start"), -40, r"question q2: the context has '' at answer_start -40"),
        ((*QUESTION, "answers", 0, "answer_start"), 9999, r"question q2: the context has '' at answer_start 9999"),
        ((*QUESTION, "answers", 0, "text"), "", r"question q2: the context has '' at answer_start 4"),
        ((*QUESTION, "id"), "q1", r"train.json: question id q1 occurs twice"),
        (("data",), [], r"train.json: no question in it"),
    ],
)
def test_a_file_that_is_not_korquad(tmp_path, path, new, message):
    with pytest.raises(CorpusError, match=message) as caught:
        korquad.read(write(tmp_path, change(TWO, path, new)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1, 2]", "train.json: a list where an object should be"),
        (b'"KorQuAD"', "train.json: a string where an object should be"),
        (b"id\tdocument\tlabel\n", r"train.json, line 1: not JSON \(Expecting value"),
        (b"", "train.json: is empty"),
        (b'{"data": "\xff"}', "train.json: character 10 is not UTF-8"),
        (b'{"data": ' + b"9" * 5_000 + b"}", r"train.json, line 1: not JSON \(Exceeds the limit \(4300 digits\)"),
        (b'{"data": ' + b"[" * 100_000, r"train.json, line 1: not JSON \(maximum recursion depth"),
        (b'{"data": NaN}', r'train.json: "data" is float and should be a list'),
        (b'{"data": 1e999}', r'train.json: "data" is float and should be a list'),
    ],
)
def test_a_file_that_is_not_json_of_that_kind(tmp_path, content, message):
    path = tmp_path / "train.json"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        korquad.read(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(CorpusError, match=r"nowhere.json: no such file; give a KorQuAD 1.0 JSON file"):
        korquad.read(tmp_path / "nowhere.json")


def test_a_folder(tmp_path):
    with pytest.raises(CorpusError, match=r"cannot be opened \(Is a directory\)"):
        korquad.read(tmp_path)


def test_a_path_may_be_a_string(tmp_path):
    path = write(tmp_path, TWO)
    assert korquad.read(str(path)) == korquad.read(path)


def test_predictions_are_written_whole_and_read_again(tmp_path):
    predictions = {"q1": "1443년", "q2": "훈민정음 🙂", "q3": "", "q\ud800": "깨진 \udc80 글자\r\n"}
    write_json(tmp_path / "predictions.json", predictions)
    assert korquad.read_predictions(tmp_path / "predictions.json") == predictions
    assert "훈민정음" in (tmp_path / "predictions.json").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["predictions.json"]


@pytest.mark.parametrize("value", [["가"], {"q1": ["가"]}, {"q1": None}])
def test_predictions_that_are_none(tmp_path, value):
    with pytest.raises(CorpusError, match="not a predictions file; it must be one JSON object"):
        korquad.read_predictions(write(tmp_path, value))


def articles(*titles):
    data = [document(question(f"{title}-{i}"), title=title)["data"][0] for i, title in enumerate(titles)]
    return korquad.parse({"data": data}, "official.json")


def test_a_lone_surrogate_in_a_title():
    train, valid = korquad.split_by_article(articles("가\ud800", "나"))
    assert {*train.titles, *valid.titles} == {"가\ud800", "나"}


def test_split_by_article_follows_the_titles():
    titles = [f"문서 {i}" for i in range(40)]
    train, valid = korquad.split_by_article(articles(*titles, *titles[:3]))
    expected = {title for title in titles if int(hashlib.sha256(title.encode()).hexdigest(), 16) % 5 == 0}
    assert set(valid.titles) == expected
    assert not expected & set(train.titles)
    assert len(train.questions) + len(valid.questions) == 43
    for part in (train, valid):
        assert [q.context for q in part.questions] == list(range(len(part.questions)))
        assert all(q.id.startswith(part.titles[q.context]) for q in part.questions)


def test_split_by_article_of_the_official_file(korbert_data):
    train, valid = korquad.split_by_article(korquad.read(korbert_data / "korquad1" / "KorQuAD_v1.0_dev.json"))
    assert (len(train.questions), len(set(train.titles))) == (3957, 107)
    assert (len(valid.questions), len(set(valid.titles))) == (1817, 33)
    assert valid.contexts[valid.questions[0].context].count(valid.questions[0].answers[0].text) > 0


def test_join_keeps_order_and_contexts():
    joined = korquad.join({"a.json": articles("가", "나"), "b.json": articles("다")})
    assert joined.titles == ("가", "나", "다")
    assert [q.context for q in joined.questions] == [0, 1, 2]


def test_join_refuses_a_repeated_id():
    with pytest.raises(CorpusError, match=r"a.json, b.json: question id 가-0 occurs twice"):
        korquad.join({"a.json": articles("가"), "b.json": articles("가")})
