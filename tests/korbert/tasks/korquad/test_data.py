import copy
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from korbert.errors import CorpusError
from korbert.system.durable import write_json
from korbert.tasks import korquad
from korbert.tasks.files import GoldAnswer
from korbert.tasks.splits import split_by_article
from tests.korbert.tasks.writing import written

CONTEXT = "세종은 1443년에 한글을 만들었다.\r\n🙂 그것은 훈민정음이다."
PARAGRAPH = ("data", 0, "paragraphs", 0)
QUESTION = (*PARAGRAPH, "qas", 1)


def question(id="q1", text="1443년", start=4, asked="한글은 언제 만들어졌나?"):
    return {"id": id, "question": asked, "answers": [{"text": text, "answer_start": start}]}


def document(*qas, title="한글", context=CONTEXT):
    paragraph = {"context": context, "qas": list(qas or [question()])}
    return {"version": "KorQuAD_v1.0_train", "data": [{"title": title, "paragraphs": [paragraph]}]}


def test_read_counts_code_points_and_answers_and_titles_may_be_absent(tmp_path):
    start = CONTEXT.index("훈민정음")
    value = document(question(), question("q2", "훈민정음", start))
    first, second = korquad.read(written(tmp_path, "train.json", value))
    assert (first["title"], first["context"], first["id"]) == ("한글", CONTEXT, "q1")
    assert first["question"] == "한글은 언제 만들어졌나?"
    assert (first["answers"], second["answers"]) == ([GoldAnswer("1443년", 4)], [GoldAnswer("훈민정음", start)])
    value = document({"id": "q1", "question": "누구인가?"})
    del value["data"][0]["title"]
    (row,) = korquad.read(written(tmp_path, "train.json", value))
    assert (row["answers"], row["title"]) == (None, None)


def change(value, path, new):
    """A copy of a JSON value with another value at the path; `...` removes the key."""
    node = value = copy.deepcopy(value)
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = new
    if new is ...:
        del node[path[-1]]
    return value


TWO = document(question(), question("q2"))


@pytest.mark.parametrize(
    ("path", "new", "message"),
    [
        (("data",), ..., "train.json: an object without a list of objects: give a list"),
        (("data", 0), "글", "train.json: an object without a list of objects"),
        (("data", 0, "paragraphs"), None, "train.json, record 1: article 0 has no list of paragraphs"),
        ((*PARAGRAPH, "context"), ..., "train.json, record 1: article 0 has no list of paragraphs"),
        ((*QUESTION, "id"), ..., "train.json, record 2: 'id' is empty: correct it: every question counts"),
        ((*QUESTION, "question"), [], r"train.json, record 2: 'question' is a list, not a text"),
        ((*QUESTION, "answers", 0, "text"), 3.5, "record 2: 'answers' has a part 0 that is a number with a fraction"),
        ((*QUESTION, "answers", 0, "answer_start"), "넷", "has a part 0 that has answer_start '넷', not a character"),
        ((*QUESTION, "id"), "q1", r"id 'q1' is at .*train.json, record 1 and at .*train.json, record 2"),
        (("data",), [], "train.json: an object without a list of objects"),
    ],
)
def test_a_file_that_is_not_korquad(tmp_path, path, new, message):
    with pytest.raises(CorpusError, match=message) as caught:
        korquad.read(written(tmp_path, "train.json", change(TWO, path, new)))
    assert "\n" not in str(caught.value)


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(pipe.write_text, json.dumps(TWO), encoding="utf-8")
        assert [row["id"] for row in korquad.read(pipe)] == ["q1", "q2"]
        assert writing.result(timeout=10) > 0


def test_predictions_are_written_whole_and_read_again(tmp_path):
    """Files that are not predictions are tested in tests/pipelines/test_submission.py."""
    predictions = {"q1": "1443년", "q2": "훈민정음 🙂", "q3": "", "q\ud800": "깨진 \udc80 글자\r\n"}
    write_json(tmp_path / "predictions.json", predictions)
    assert korquad.read_predictions(tmp_path / "predictions.json") == predictions
    assert "훈민정음" in (tmp_path / "predictions.json").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["predictions.json"]


def test_split_by_article_of_the_official_file(korbert_data):
    parts = split_by_article(korquad.read(korbert_data / "korquad1" / "KorQuAD_v1.0_dev.json"))
    assert [(len(part), len({row["title"] for row in part})) for part in parts] == [(3957, 107), (1817, 33)]
