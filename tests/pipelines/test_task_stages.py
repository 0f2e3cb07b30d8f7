"""The stages nsmc and korquad on a few rows: what they write, what they refuse, and that a killed run resumes."""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message
from korbert.model import Model
from korbert.modeling import PretrainingModel, save_model
from korbert.pipelines.artifacts import Runtime, store
from korbert.pipelines.artifacts.stage import StageInputs
from korbert.pipelines.stages.finetuning import run
from korbert.pipelines.submission.bundle import submit
from korbert.system.durable import read_json
from korbert.tasks import korquad
from korbert.tasks.kinds.sections import KorquadSection, NsmcSection, QuestionAnsweringSection
from korbert.tokenization import Tokenizer
from tests.korbert.tiny import json_lines
from tests.pipelines.reports.conftest import write_parquet

REVIEWS = {
    "validation_share": 0.25, "max_length": 24, "batch_size": 8, "epochs": 2, "learning_rates": [5e-3, 1e-3],
    "precision": "fp32", "threads": 1, "log_every": 1, "checkpoint_every": 2,
}  # fmt: skip
QUESTIONS = {
    "max_length": 56, "stride": 8, "max_query_pieces": 12, "batch_size": 8, "epochs": 40, "learning_rates": 5e-3,
    "validation_share": 0.25, "precision": "fp32", "threads": 1, "log_every": 5, "checkpoint_every": 4,
}  # fmt: skip
_GOOD = ("정말 재미있다", "배우의 연기가 좋았다", "최고의 영화", "감동적인 이야기", "또 보고 싶다")
_BAD = ("정말 지루하다", "시간이 아깝다", "최악의 영화", "억지스러운 이야기", "다시는 보고 싶지 않다")
_ENDS = ("", "!", " ㅋㅋㅋ", " 진짜로", " 10점", ' "', "...", " 친구와 함께 봤다")

# Title, context, then question and answer in turn.
ARTICLES = (
    ("한강",
     "한강은 강원도에서 시작해 서울을 지나 황해로 흐른다. 길이는 약 494킬로미터이며, 예전에는 아리수라고도 불렸다.",
     ("한강은 어디에서 시작하는가?", "강원도"), ("한강의 길이는 얼마인가?", "약 494킬로미터"),
     ("한강을 예전에 부르던 이름은?", "아리수")),
    ("김치", "김치는 배추를 소금에 절여 만든다. 고춧가루와 마늘을 넣고 항아리에 담아 겨울 동안 익힌다.",
     ("김치는 무엇으로 만드는가?", "배추"), ("김치를 어디에 담는가?", "항아리")),
    ("윷놀이", "윷놀이는 설날에 온 가족이 함께 즐기는 놀이이다. 윷가락은 네 개이고, 모가 나오면 다섯 칸을 간다.",
     ("윷가락은 몇 개인가?", "네 개"), ("윷놀이는 언제 즐기는가?", "설날"), ("모가 나오면 몇 칸을 가는가?", "다섯 칸")),
    ("거북선", "거북선은 이순신이 이끈 수군의 배이다. 등에는 쇠못을 박아 적이 오르지 못하게 했다.",
     ("거북선을 이끈 사람은 누구인가?", "이순신"), ("거북선의 등에는 무엇을 박았는가?", "쇠못")),
)  # fmt: skip


def document(articles):
    data = []
    for title, context, *asked in articles:
        found = [[{"text": answer, "answer_start": context.index(answer)}] for _, answer in asked]
        qas = [{"id": f"{title}-{n}", "question": one[0], "answers": found[n]} for n, one in enumerate(asked)]
        data.append({"title": title, "paragraphs": [{"context": context, "qas": qas}]})
    return {"version": "KorQuAD_v1.0_train", "data": data}


def reviews(count, seed):
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        label = int(generator.integers(2))
        first, second = generator.choice(_GOOD if label else _BAD, 2)
        found.append((f"{first} {second}{generator.choice(_ENDS)}", label))
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory, tiny_tokenizer, tiny_config):
    """A folder with a pretrained model of 64 positions, the documents of a corpus, and files of both tasks."""
    root = tmp_path_factory.mktemp("tasks")
    config = tiny_config(hidden_size=32, num_hidden_layers=1, intermediate_size=64, max_position_embeddings=64)
    model = PretrainingModel(config, torch.Generator().manual_seed(0))
    save_model(root / "pretrain" / "model", model, tiny_tokenizer)
    documents = [{"text": "첫 줄\n말뭉치의 한 줄"}, {"text": "다른 문서"}]
    write_parquet(root / "clean" / "documents" / "part-00000.parquet", documents)
    train = reviews(150, 1)
    test = [(train[0][0].replace(" ", "  "), train[0][1]), ("말뭉치의 한 줄", 0), *reviews(57, 2)]
    for name, rows in (("train", train), ("test", test)):
        lines = (f"{100 + number}\t{text}\t{label}\n" for number, (text, label) in enumerate(rows))
        (root / f"{name}.txt").write_text("id\tdocument\tlabel\n" + "".join(lines), encoding="utf-8")
    for name, articles in (("train", ARTICLES), ("test", ARTICLES[2:])):
        (root / f"{name}.json").write_text(json.dumps(document(articles), ensure_ascii=False), encoding="utf-8")
    return root


def make(root, settings, output, **files):
    end = "txt" if isinstance(settings, NsmcSection) else "json"
    files = files or {"train": f"train.{end}", "test": f"test.{end}"}
    given = {role: (root / name,) for role, name in files.items()}
    output.mkdir(exist_ok=True)
    inputs = StageInputs({"clean": root / "clean", "pretrain": root / "pretrain"}, given)
    return run(settings, inputs, output, Runtime(root, root, workers=1, device="cpu"))


def digests(folder):
    files = store.data_files(folder)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def rated(root):
    """An artifact of nsmc, made without interruption, and its counts."""
    return root / "nsmc", make(root, NsmcSection.model_validate(REVIEWS), root / "nsmc")


@pytest.fixture(scope="module")
def answered(root):
    return root / "korquad", make(root, KorquadSection.model_validate(QUESTIONS), root / "korquad")


def test_reviews_are_scored_beside_an_untrained_encoder_and_those_unseen_apart(rated, root):
    output, counts = rated
    scores = read_json(output / "scores.json")
    assert [model["name"] for model in scores["models"]] == ["pretrained", "scratch", "majority", "tfidf"]
    assert (counts["train"] + counts["valid"], counts["test"]) == (150, 59)
    assert scores["counts"] == counts
    assert {trial["learning_rate"] for trial in scores["rows"][0]["trials"]} == {5e-3, 1e-3}
    assert scores["rows"][0]["scores"]["accuracy"] > 0.8  # the words tell it

    lines = json_lines(output / "predictions.jsonl")
    train = (root / "train.txt").read_text("utf-8").splitlines()[1:]
    seen = {" ".join(line.split("\t")[1].split()) for line in train} | {"말뭉치의 한 줄"}
    unseen = [" ".join(line["text"].split()) not in seen for line in lines]
    assert unseen[:2] == [False, False]
    assert sum(unseen) == counts["unseen"] > 0
    for row in scores["rows"][:2]:
        pairs = [(line["label"], line["predictions"][row["name"]][0]["label"]) for line in lines]
        for name, chosen in (("scores", [True] * len(pairs)), ("unseen", unseen)):
            right = [gold == predicted for (gold, predicted), own in zip(pairs, chosen, strict=True) if own]
            assert row[name]["accuracy"] == sum(right) / len(right)


def test_questions_are_answered_scored_and_explained(answered, root, tmp_path):
    output, counts = answered
    predictions = read_json(output / "predictions.json")
    scores = read_json(output / "scores.json")
    test = read_json(root / "test.json")
    contexts = {q["id"]: p["context"] for a in test["data"] for p in a["paragraphs"] for q in p["qas"]}
    assert predictions.keys() == contexts.keys()
    assert all(text in contexts[id] for id, text in predictions.items())
    official = korquad.score(korquad.read(root / "test.json"), predictions)
    assert {key: 100 * scores["rows"][0]["scores"][key] for key in official} == pytest.approx(official)
    details = scores["details"]
    assert details["windows"] >= counts["test"] == 5
    assert details["questions_cut"] > 0  # at 12 pieces some are
    assert sum(details["by_cause"].values()) == len(details["misses"]) == round(5 - official["exact_match"] / 20)
    assert official["f1"] > 50  # they are among those learned
    reader = Model.load(output / "submission" / "model", "cpu")
    context = ARTICLES[0][1]
    answer = reader.answer("한강은 어디에서 시작하는가?", context)
    assert context[answer.start : answer.end] == answer.answer
    submit(output, root / "test.json", tmp_path / "answers.json", device="cpu")
    assert read_json(tmp_path / "answers.json") == predictions


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from korbert.training.updates import Updates
from test_task_stages import make, read

steps, update = 0, Updates.update

def deadly(*args, **kwargs):
    global steps
    steps += 1
    if steps > int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
    return update(*args, **kwargs)

Updates.update = deadly
section, files = read(sys.argv[5])
make(Path(sys.argv[1]), section, Path(sys.argv[3]), **files)
"""

_FILES = {"train": "train.json", "test": "test.json", "warm_up": "warm_up.json"}


def read(name):
    """The section and the files of a run that is killed."""
    if name == "nsmc":
        return NsmcSection.model_validate(REVIEWS), {}
    warm = {**QUESTIONS, "epochs": 4, "warm_up": "warm_up.json", "warm_up_epochs": 10}
    return KorquadSection.model_validate(warm), _FILES


def kill(root, output, name, after):
    """A run that is killed in the update behind the first `after` ones."""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", KILLED, str(root), here, str(output), str(after), name]
    assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL
    assert not (output / "scores.json").exists()


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_in_the_same_bytes(rated, root, tmp_path, monkeypatch):
    kill(root, tmp_path, "nsmc", 12)
    kill(root, tmp_path, "nsmc", 25)
    monkeypatch.setattr(Tokenizer, "pieces_of_many", lambda *_, **__: pytest.fail("a text was analysed again"))
    make(root, NsmcSection.model_validate(REVIEWS), tmp_path)
    assert digests(tmp_path) == digests(rated[0])


@pytest.mark.parametrize(
    "harmed", ["work/rows/*/best.safetensors", "work/rows/*/result.json", "scores.json model/*.safetensors"]
)
def test_what_is_damaged_or_missing_at_the_end_is_made_anew(rated, root, tmp_path, harmed):
    shutil.copytree(rated[0], tmp_path / "harmed")
    for path in [path for pattern in harmed.split() for path in (tmp_path / "harmed").glob(pattern)]:
        path.write_bytes(b'{"epoch": 1}') if path.name == "result.json" else path.unlink()
    make(root, NsmcSection.model_validate(REVIEWS), tmp_path / "harmed")
    assert digests(tmp_path / "harmed") == digests(rated[0])


@pytest.mark.slow
def test_a_warm_up_is_learned_first_and_only_once(root, tmp_path):
    (root / "warm_up.json").write_text(json.dumps(document(ARTICLES[:2]), ensure_ascii=False), encoding="utf-8")
    section, files = read("warm")
    assert make(root, section, tmp_path / "warm", **files)["warm_up"] == 5
    cold = section.model_copy(update={"warm_up": ""})
    make(root, cold, tmp_path / "cold", train="train.json", test="test.json")
    first = {}
    for name in ("warm", "cold"):
        (curve,) = (tmp_path / name / "metrics").glob("pretrained-*.jsonl")
        first[name] = json_lines(curve)[0]["loss"]
    assert first["warm"] < first["cold"]  # some of the questions are known by now
    assert not (tmp_path / "cold" / "metrics" / "warm_up.jsonl").exists()

    total = max(line["step"] for line in json_lines(tmp_path / "warm" / "metrics" / "warm_up.jsonl"))
    for after in (total - 3, total + 2):
        kill(root, tmp_path / f"killed-{after}", "warm", after)
        make(root, section, tmp_path / f"killed-{after}", **files)
        assert digests(tmp_path / f"killed-{after}") == digests(tmp_path / "warm")


def test_one_file_split_by_article(root, tmp_path):
    articles = [(f"글 {number}", *rest) for number, (_, *rest) in enumerate(ARTICLES * 3)]
    (root / "official.json").write_text(json.dumps(document(articles), ensure_ascii=False), encoding="utf-8")
    settings = KorquadSection.model_validate({**QUESTIONS, "epochs": 1, "split_by_article": True})
    assert settings.patterns().keys() == {"train"}
    counts = make(root, settings, tmp_path, train="official.json")
    held = [a for a in articles if int(hashlib.sha256(a[0].encode()).hexdigest(), 16) % 5 == 0]
    assert counts["test"] == sum(len(a) - 2 for a in held) > 0
    assert counts["train"] + counts["valid"] == sum(len(a) - 2 for a in articles) - counts["test"]
    said = map(Message.from_json, read_json(tmp_path / "scores.json")["said"])
    assert any("not comparable with published scores" in line for line in said)

    (root / "one.json").write_text(json.dumps(document(ARTICLES[:1]), ensure_ascii=False), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"one\.json: split_by_article leaves \d rows to train on and \d to score"):
        make(root, settings, tmp_path / "one", train="one.json")


def test_answers_to_questions_without_ids_are_numbered(root, tmp_path):
    rows = [
        {"context": one[1], "question": question, "answer": answer} for one in ARTICLES for question, answer in one[2:]
    ]
    (root / "plain.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = {**QUESTIONS, "epochs": 1, "train": "plain.jsonl", "submission": True}
    make(root, QuestionAnsweringSection.model_validate(settings), tmp_path, train="plain.jsonl", test="plain.jsonl")
    assert list(read_json(tmp_path / "predictions.json")) == [str(number) for number in range(len(rows))]


def test_settings_that_do_not_fit_are_refused(root, tmp_path):
    long = NsmcSection.model_validate({**REVIEWS, "max_length": 128})
    with pytest.raises(SettingsError, match=r"max_length 128 is more than the 64 positions of .*pretrain"):
        make(root, long, tmp_path)
    with pytest.raises(ValidationError, match=r"set 'korquad' has its own files: .* split_by_article out"):
        QuestionAnsweringSection.model_validate({"set": "korquad", "split_by_article": True})
