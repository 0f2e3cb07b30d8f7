"""Questions on texts: from a file of anybody's to a scored, saved and loaded model."""

import json

import pytest

import korbert
from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.modeling import read_config
from korbert.pipelines.experiments.compare_tasks import compare_tasks
from korbert.pipelines.submission.bundle import submit
from korbert.tasks.kinds.detecting import detect
from tests.korbert.tiny import json_lines
from tests.pipelines.small_tasks import fine_tune, scores_of, write_table

RIVER = (
    "한강은 태백산맥에서 시작해 서울을 지나 황해로 흐른다. 길이는 494킬로미터이고, 예전에는 아리수라고도 불렸다."
    " 강에는 서른 개가 넘는 다리가 있으며 가장 오래된 것은 한강철교이다."
)
KING = "세종은 1443년에 한글을 만들었다. 그는 조선의 네 번째 임금이다."
ISLAND = "제주도의 가장 높은 산은 한라산이다."
QUESTIONS = [
    (KING, "한글은 언제 만들었나?", "1443년"), (KING, "세종은 어느 나라의 임금인가?", "조선"),
    (KING, "세종의 아내는 누구인가?", ""), (RIVER, "한강은 어디에서 시작하는가?", "태백산맥"),
    (RIVER, "가장 오래된 다리는?", "한강철교"), (RIVER, "한강의 예전 이름은?", "아리수"), (RIVER, "한강의 깊이는?", ""),
    (RIVER, "한강철교는 누가 설계했나?", ""), (ISLAND, "가장 높은 산은?", "한라산"), (ISLAND, "제주도의 인구는?", ""),
]  # fmt: skip
ANSWERS = [answer for *_, answer in QUESTIONS]
BASE = {
    "learning_rates": 6e-3, "batch_size": 8, "epochs": 40, "warmup_share": 0.0, "threads": 1, "checkpoint_every": 9999,
    "max_length": 36, "stride": 8, "max_query_pieces": 12,
}  # fmt: skip


@pytest.fixture(scope="module")
def start(untrained):
    return untrained(hidden_size=32, intermediate_size=64, type_vocab_size=2)


@pytest.fixture
def learn(tmp_path, start):
    """Runs the task on files by part; the artifact's folder."""

    def learned(files, kind="question-answering", **settings):
        fine_tune(kind, start, tmp_path / "out", files, **{**BASE, **settings})
        return tmp_path / "out"

    return learned


def table(path, rows=None, header="지문,질문,정답"):
    return write_table(path, header.split(","), QUESTIONS if rows is None else rows, "utf-8-sig")


def squad(path, *, version=2):
    """The same in SQuAD's form; version 1 leaves the questions without answer out."""
    data = []
    for context in (KING, RIVER, ISLAND):
        qas = []
        for place, (own, question, answer) in enumerate(QUESTIONS):
            if own != context or not (answer or version == 2):
                continue
            answers = [{"text": answer, "answer_start": context.index(answer)}] if answer else []
            said = {"is_impossible": not answer} if version == 2 else {}
            qas.append({"id": f"q{place}", "question": question, "answers": answers, **said})
        data.append({"title": context[:3], "paragraphs": [{"context": context, "qas": qas}]})
    path.write_text(json.dumps({"version": "v2.0", "data": data}, ensure_ascii=False), encoding="utf-8")
    return path


def test_ten_questions_of_a_table(learn, tmp_path):
    path = table(tmp_path / "mine.csv")
    said = "question from '질문', context from '지문', answers from '정답'"
    assert detect(path, {})[::2] == ("question-answering", said)
    folder = learn(dict.fromkeys(("train", "valid", "test"), path), precision="fp32")
    scores = scores_of(folder)
    assert scores["pretrained"] == dict.fromkeys(("f1", "exact_match", "has_answer_f1", "no_answer_accuracy"), 1.0)
    assert scores["no_answer"] == dict(zip(scores["pretrained"], (0.4, 0.4, 0.0, 1.0), strict=True))
    assert scores["sentence"]["f1"] >= 0.4

    reader = korbert.load(folder, "cpu")
    found = reader.answer([question for _, question, _ in QUESTIONS], [context for context, *_ in QUESTIONS])
    assert [one.answer for one in found] == ANSWERS
    assert all((one.start, one.end) == (0, 0) and 0 < one.score <= 1 for one in found if not one.answer)
    lines = json_lines(folder / "predictions.jsonl")
    for line, one in zip(lines, found, strict=True):
        (kept,) = line["predictions"]["pretrained"]
        assert (kept["answer"], kept["start"], kept["end"]) == (one.answer, one.start, one.end)
        assert [kept["score"], kept["no_answer_score"]] == pytest.approx([one.score, one.no_answer_score], 1e-4)

    compared = compare_tasks([folder, folder], ["pretrained", "no_answer"])  # on the rows of predictions.jsonl
    assert [one["difference"] for one in compared.scores["comparisons"]] == [pytest.approx(1.0 - 0.4)]

    task = read_config(folder)["task"]
    expected = {"kind": "question-answering", "max_length": 36, "stride": 8, "unanswerable": True}
    assert expected.items() <= task.items()
    assert reader.kind.threshold == task["threshold"]
    answered = max(one.no_answer_score for one in found if one.answer)
    not_answered = min(one.no_answer_score for one in found if not one.answer)
    assert answered < task["threshold"] < not_answered
    assert task["threshold"] == pytest.approx((answered + not_answered) / 2, abs=1e-4)


def test_ten_questions_in_the_form_of_squad(learn, tmp_path):
    path = squad(tmp_path / "mine.json")
    assert detect(path, {}).kind == "question-answering"
    metrics = ("klue_exact_match", "rouge_w")
    folder = learn(dict.fromkeys(("train", "valid", "test"), path), metrics=metrics)
    assert scores_of(folder)["pretrained"] == dict.fromkeys(metrics, 1.0)
    assert submit(folder, path, tmp_path / "answers.json", device="cpu") == 10
    answers = json.loads((tmp_path / "answers.json").read_text())
    assert answers == {f"q{place}": answer for place, answer in enumerate(ANSWERS)}


def test_questions_that_all_have_an_answer(learn, tmp_path):
    folder = learn({"train": squad(tmp_path / "mine.json", version=1)}, epochs=1, validation_share=0.4)
    found = json.loads((folder / "scores.json").read_text())
    assert found["metrics"] == ["f1", "exact_match"]
    assert (found["task"]["unanswerable"], found["task"]["threshold"]) == (False, 0.0)
    lines = json_lines(folder / "predictions.jsonl")
    assert len({line["context"] for line in lines}) == 1  # questions on one text are held out together
    assert list(lines[0]["predictions"]["pretrained"][0]) == ["answer", "start", "end", "score"]


def test_the_threshold_is_chosen_on_validation_alone(learn, tmp_path):
    """Its questions all have an answer, so that an untrained model leaves none without; all of the test have none."""
    train = table(tmp_path / "train.csv")
    valid = table(tmp_path / "valid.csv", [one for one in QUESTIONS if one[2]])
    test = table(tmp_path / "test.csv", [one for one in QUESTIONS if not one[2]])
    folder = learn({"train": train, "valid": valid, "test": test}, epochs=1, learning_rates=1e-9)
    assert scores_of(folder)["pretrained"]["no_answer_accuracy"] < 1.0
    assert scores_of(folder)["pretrained"]["has_answer_f1"] is None
    lines = json_lines(folder / "predictions.jsonl")
    threshold = read_config(folder)["task"]["threshold"]
    for line in lines:
        (one,) = line["predictions"]["pretrained"]
        assert (one["no_answer_score"] > threshold) == (not one["answer"])


def test_rows_that_cannot_be_learned(learn, tmp_path):
    wrong = table(tmp_path / "mine.csv", [*QUESTIONS, (KING, "누가 만들었나?", "장영실")])
    folder = learn({"train": wrong}, epochs=1)
    said = map(Message.from_json, json.loads((folder / "scores.json").read_text())["said"])
    assert f"dropped 1 as bad_row: {wrong.name}, line 12: the context has no '장영실'" in said
    silent = [one[:2] for one in QUESTIONS]
    for files, said in (
        ({"train": table(tmp_path / "none.csv", [(*one, "") for one in silent])}, "no question has an answer"),
        ({"train": wrong, "test": table(tmp_path / "a.csv", silent, "context,question")}, "no column for answers"),
    ):
        with pytest.raises(CorpusError, match=said):
            learn(files)
