"""`korbert questions`, as a user types it, and what reads its files."""

import json

import pytest

from korbert.corpus.questions.generate import generate
from korbert.tasks import korquad
from korbert.tasks.files.rows import read_rows
from korbert.tasks.kinds.question_answering import QuestionAnswering

LINES = [
    f"{name}는 대한민국의 시인이다. {1900 + i}년에 평양에서 태어났다. 많은 사람이 그 시를 읽었다고 한다. "
    f"{name}는 {1930 + i}년 5월 {i + 1}일 서울 시인협회에 가입하였다. 사람들은 그 일을 오래 이야기했다. "
    "그 뒤로도 오랫동안 쉬지 않고 썼다. 그 밖에도 여러 일이 있었으나 자세한 것은 아무도 모른다. 아무도 없다."
    for i, name in enumerate(("윤동주", "서정주", "박경리", "최인호", "나태주"))
]


@pytest.fixture
def questions(here, command):
    """(file, output, options, code) -> what `korbert questions` prints of the poets or another file."""
    (here / "poets.txt").write_text("\n".join(LINES), encoding="utf-8")

    def asked(file, output, *options, code=0):
        return command("questions", file, "--output", output, *options, "--workers", "1", code=code)

    return asked


def test_the_file_holds_questions_and_can_be_read(here, questions):
    said = questions("poets.txt", "made.json").out
    made = korquad.read(here / "made.json")
    assert f"{len(made)} questions in made.json" in said
    assert "5 documents, 5 paragraphs" in said
    assert "questions by question word: " in said
    assert {row["context"] for row in made} <= set(LINES)
    assert all(row["context"][slice(*row["answers"][0].span)] == row["answers"][0].text for row in made)
    assert len(read_rows(here / "made.json", QuestionAnswering.roles)) == len(made)
    questions("poets.txt", "other.json", "--seed", "2")
    assert (here / "other.json").read_bytes() != (here / "made.json").read_bytes()


def test_count_stops_and_says_what_it_left_out(here, questions, monkeypatch):
    said = questions("poets.txt", "made.json", "--count", "3", "--per-paragraph", "1").out
    assert len(korquad.read(here / "made.json")) == 3
    assert "3 questions in made.json" in said
    assert "2 more from the last part were left out because of --count" in said
    monkeypatch.setattr("korbert.corpus.questions.generate._PART_BYTES", 500)
    assert "from 5 documents" not in questions("poets.txt", "one.json", "--count", "1").out


def test_a_field_of_another_name(here, questions):
    (here / "rows.jsonl").write_text("\n".join(json.dumps({"본문": line}) for line in LINES), encoding="utf-8")
    questions("rows.jsonl", "made.json", "--text", "본문")


@pytest.mark.parametrize(("given", "code", "said"), [
    ("nowhere.txt made.json", 2, "nowhere.txt: no such file"),
    ("poets.txt made.csv", 2, "made.csv: extension is .csv: use .json"),
    ("short.txt made.json", 2, "short.txt: no questions from 1 paragraphs, 1 of them too short"),
    ("other.jsonl made.json", 2, "none of 2 records has text in the field 'text': name the field with --text"),
    ("poets.txt made.json --count 0", 2, "0 is not in the range"),
])  # fmt: skip
def test_errors(here, questions, given, code, said):
    (here / "short.txt").write_text("세종은 1443년에 한글을 만들었다.", encoding="utf-8")
    (here / "other.jsonl").write_text('{"body": "가"}\n{"body": "나"}\n', encoding="utf-8")
    assert said in questions(*given.split(), code=code).err
    assert not (here / "made.json").exists()
    assert not list(here.glob(".korbert-*"))


def _parts(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.part")}


@pytest.mark.slow
def test_an_interrupted_run_is_resumed(here, questions, monkeypatch):
    monkeypatch.setattr("korbert.corpus.questions.generate._PART_BYTES", 500)
    questions("poets.txt", "whole.json")
    assert not (here / "whole.json.partial").exists()
    made = []

    def interrupted(number):
        def questions(*given, **named):
            for asked in generate(*given, **named):
                made.append(asked)
                if len(made) == number:
                    raise KeyboardInterrupt
                yield asked

        return questions

    monkeypatch.setattr("korbert.pipelines.inference.questions.generate", interrupted(2))
    questions("poets.txt", "made.json", code=130)
    assert not (here / "made.json").exists()
    left = _parts(here / "made.json.partial")
    assert left
    monkeypatch.setattr("korbert.pipelines.inference.questions.generate", interrupted(-1))
    removed = {}
    monkeypatch.setattr("shutil.rmtree", lambda path: removed.update(_parts(path)))
    said = questions("poets.txt", "made.json").out
    assert (here / "made.json").read_bytes() == (here / "whole.json").read_bytes()
    assert left.items() <= removed.items()
    assert f"; {len(left)} of {len(removed)} parts are from an earlier run" in said
