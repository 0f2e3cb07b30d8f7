"""SQuAD 1.1, SQuAD 2.0 and KLUE-MRC: one form, with and without answers. KorQuAD's errors: korquad/test_data.py."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from korbert.errors import CorpusError
from korbert.tasks import korquad, squad
from korbert.tasks.questions import Answer, Dataset

CONTEXT = "세종은 1443년에 한글을 만들었다.\r\n🙂 그것은 훈민정음이다."
RIGHT = [{"text": "1443년", "answer_start": 4}]


def document(*qas: dict[str, Any], **article: Any) -> dict[str, Any]:
    paragraphs = [{"context": CONTEXT, "qas": [{"id": "q0", "question": "언제?", "answers": RIGHT}, *qas]}]
    return {"version": "v2.0", "data": [{"title": "한글", **article, "paragraphs": paragraphs}]}


def parse(*qas: dict[str, Any], **options: Any) -> Dataset:
    return squad.parse(document(*qas), "dev.json", **options)


def test_squad_1(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text(json.dumps(document()), encoding="utf-8")
    assert squad.read(path) == korquad.read(path)


def test_squad_2() -> None:
    """Answers of an impossible question are empty in the official files, plausible ones beside them."""
    questions = parse(
        {"id": "q1", "question": "언제?", "answers": RIGHT, "is_impossible": False},
        {"id": "q2", "question": "어디?", "answers": [], "is_impossible": True, "plausible_answers": RIGHT},
        {"id": "q3", "question": "어디?", "is_impossible": True, "plausible_answers": "left unread"},
        {"id": "q4", "question": "어디?", "answers": []},  # what evaluate-v2.0.py goes by
    ).questions
    assert [question.answers for question in questions] == [(Answer("1443년", 4),)] * 2 + [()] * 3


def test_klue_mrc() -> None:
    """The keys of klue-mrc-v1.1_train.json, as KLUE-baseline and tfds-korean read it (klue_mrc.py of both)."""
    klue = {
        "version": "klue-mrc-v1_train",
        "data": [
            {
                "title": "한글",
                "source": "wikipedia",
                "news_category": None,
                "paragraphs": [
                    {
                        "context": CONTEXT,
                        "qas": [
                            {
                                "question": "언제 만들었나?",
                                "answers": [*RIGHT, {"text": "1443", "answer_start": 4}],
                                "question_type": 1,
                                "is_impossible": False,
                                "guid": "klue-mrc-v1_train_00000",
                            },
                            {
                                "question": "어디에서 만들었나?",
                                "answers": [],
                                "plausible_answers": RIGHT,
                                "question_type": 3,
                                "is_impossible": True,
                                "guid": "klue-mrc-v1_train_00001",
                            },
                        ],
                    }
                ],
            }
        ],
    }
    first, second = squad.parse(klue, "klue.json").questions
    assert (first.id, first.answers) == ("klue-mrc-v1_train_00000", (Answer("1443년", 4), Answer("1443", 4)))
    assert (second.id, second.answers) == ("klue-mrc-v1_train_00001", ())


def test_parts_of_the_answers() -> None:
    given = [{"text": "1443년", "answer_start": 999}]
    impossible = {"id": "q2", "question": "?", "answers": [], "is_impossible": True}
    read = parse({"id": "q1", "question": "?", "answers": given}, impossible, answers="texts").questions
    assert [question.answers for question in read] == [(Answer("1443년", 0),)] * 2 + [()]
    assert all(not question.answers for question in parse({"id": "q1", "question": "?"}, answers="none").questions)


PLACE = r"dev\.json: data\[0\]\.paragraphs\[0\]\.qas\[1\]"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"is_impossible": True}, rf'{PLACE}: question q1 has an answer, and "is_impossible" is true; take one of the'),
        ({"is_impossible": False, "answers": []}, rf'{PLACE}: question q1 has no answer, and "is_impossible" is false'),
        ({"is_impossible": "false"}, rf'{PLACE}: "is_impossible" is a string and should be true or false; a SQuAD'),
        ({"is_impossible": None}, rf'{PLACE}: "is_impossible" is null and should be true or false'),
        ({"is_impossible": 0}, rf'{PLACE}: "is_impossible" is a whole number and should be true or false'),
        ({"answers": ...}, rf'{PLACE}: no "answers" there; a SQuAD file is'),
        ({"answers": ..., "is_impossible": False}, rf'{PLACE}: no "answers" there'),
        ({"answers": [{"text": "1443년", "answer_start": 5}]}, rf"{PLACE}\.answers\[0\]: question q1: the context has"),
        ({"id": ...}, rf'{PLACE}: no "id" there; a SQuAD file is .*"id" or "guid", "question"'),
        ({"id": ..., "guid": 7}, rf'{PLACE}: "guid" is a whole number and should be a string'),
        ({"id": ..., "guid": "q0"}, r"dev\.json: question id q0 occurs twice"),
    ],
)
def test_faults_name_file_and_question(changes: dict[str, Any], said: str) -> None:
    question = {"id": "q1", "question": "언제?", "answers": RIGHT, **changes}
    with pytest.raises(CorpusError, match=said):
        parse({key: value for key, value in question.items() if value is not ...})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nowhere\.json: no such file; give a SQuAD JSON file"):
        squad.read(tmp_path / "nowhere.json")
    (tmp_path / "a.json").write_text("[")
    with pytest.raises(CorpusError, match=r"a\.json, line 1: not JSON .*; a SQuAD file is"):
        squad.read(tmp_path / "a.json")


def test_korquad_has_an_answer_to_every_question() -> None:
    impossible = {"id": "q1", "question": "?", "answers": [], "is_impossible": True}
    with pytest.raises(CorpusError, match=rf"{PLACE}: question q1 has no answer; give it one"):
        korquad.parse(document(impossible), "dev.json")
    with pytest.raises(CorpusError, match=rf'{PLACE}: no "id" there; a KorQuAD 1.0 file is'):
        korquad.parse(document({"guid": "q1", "question": "?", "answers": RIGHT}), "dev.json")


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as thread:
        written = thread.submit(pipe.write_text, '{"data": []}', encoding="utf-8")
        assert squad.read_json(pipe) == {"data": []}
        assert written.result(timeout=10) == 12
