import hashlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from korbert.errors import CorpusError, ModelError, SettingsError
from korbert.modeling import EncoderConfig, PretrainingModel, save_model
from korbert.tasks import korquad
from korbert.tasks.korquad.settings import KorquadSettings
from korbert.tasks.reading import Reader
from korbert.tasks.reading_settings import ReadingOptimizer
from korbert.tokenization import Tokenizer
from pipelines import artifacts
from pipelines.runtime import Runtime
from pipelines.stages import Inputs
from pipelines.tasks import KORQUAD

# Written for this test: title, context, then question and answer in turn.
ARTICLES = (
    (
        "한강",
        "한강은 강원도에서 시작해 서울을 지나 황해로 흐른다. 길이는 약 494킬로미터이며, 예전에는 아리수라고도 불렸다.",
        ("한강은 어디에서 시작하는가?", "강원도"),
        ("한강의 길이는 얼마인가?", "약 494킬로미터"),
        ("한강을 예전에 부르던 이름은?", "아리수"),
    ),
    (
        "김치",
        "김치는 배추를 소금에 절여 만든다. 고춧가루와 마늘을 넣고 항아리에 담아 겨울 동안 익힌다.",
        ("김치는 무엇으로 만드는가?", "배추"),
        ("김치를 어디에 담는가?", "항아리"),
    ),
    (
        "윷놀이",
        "윷놀이는 설날에 온 가족이 함께 즐기는 놀이이다. 윷가락은 네 개이고, 모가 나오면 다섯 칸을 간다.",
        ("윷가락은 몇 개인가?", "네 개"),
        ("윷놀이는 언제 즐기는가?", "설날"),
        ("모가 나오면 몇 칸을 가는가?", "다섯 칸"),
    ),
    (
        "거북선",
        "거북선은 이순신이 이끈 수군의 배이다. 등에는 쇠못을 박아 적이 오르지 못하게 했다.",
        ("거북선을 이끈 사람은 누구인가?", "이순신"),
        ("거북선의 등에는 무엇을 박았는가?", "쇠못"),
    ),
)

SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}

SETTINGS = KorquadSettings(
    max_length=56,
    stride=8,
    max_query_pieces=12,
    n_best=3,
    epochs=40,
    batch_size=8,
    optimizer=ReadingOptimizer(learning_rate=5e-3),
    precision="fp32",
    threads=1,
    checkpoint_every=10,
    log_every=5,
)


def document(articles):
    data = []
    for title, context, *asked in articles:
        qas = [
            {"id": f"{title}-{i}", "question": q, "answers": [{"text": a, "answer_start": context.index(a)}]}
            for i, (q, a) in enumerate(asked)
        ]
        data.append({"title": title, "paragraphs": [{"context": context, "qas": qas}]})
    return {"version": "KorQuAD_v1.0_train", "data": data}


@pytest.fixture(scope="module", autouse=True)
def _threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def root(tiny_tokenizer, tmp_path_factory):
    """A folder with the artifacts that the stage reads, and two files of questions."""
    root = tmp_path_factory.mktemp("korquad")
    tiny_tokenizer.save(root / "vocab" / "tokenizer")
    config = EncoderConfig(vocab_size=tiny_tokenizer.vocab_size, max_position_embeddings=64, **SIZES)
    save_model(root / "pretrain" / "model", PretrainingModel(config, torch.Generator().manual_seed(0)), tiny_tokenizer)
    for name, articles in (("train", ARTICLES), ("valid", ARTICLES[2:])):
        (root / f"{name}.json").write_text(json.dumps(document(articles), ensure_ascii=False), encoding="utf-8")
    return root


def inputs(root, **files):
    files = {role: (root / name,) for role, name in (files or {"train": "train.json", "valid": "valid.json"}).items()}
    return Inputs({"vocab": root / "vocab", "pretrain": root / "pretrain"}, files)


def runtime(root):
    return Runtime(root=root, data=root, workers=1, device="cpu")


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in artifacts.data_files(folder)
    }


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def made(root):
    """An artifact of the stage, made without interruption, and its counts."""
    output = root / "korquad"
    output.mkdir()
    return output, KORQUAD.run(SETTINGS, inputs(root), output, runtime(root))


def test_the_artifact_is_complete(made):
    output, _ = made
    assert {path.name for path in output.iterdir()} - artifacts.BESIDE == {
        "metrics.jsonl",
        "model",
        "nbest.json",
        "predictions.json",
        "scores.json",
        "submission",
    }


def test_every_question_is_answered_and_scored(made, root):
    output, counts = made
    predictions, n_best, scores = (load(output / f"{name}.json") for name in ("predictions", "nbest", "scores"))
    valid = load(root / "valid.json")
    contexts = {q["id"]: p["context"] for a in valid["data"] for p in a["paragraphs"] for q in p["qas"]}
    assert predictions.keys() == n_best.keys() == contexts.keys()
    for id, answers in n_best.items():
        assert predictions[id] == answers[0]["text"]
        assert len(answers) == 3
        assert all(contexts[id][a["start"] : a["end"]] == a["text"] for a in answers)
    official = korquad.score(valid, predictions)
    assert {key: scores[key] for key in official} == official == {key: counts[key] for key in official}
    assert scores["count"] == len(contexts) == 5
    assert scores["windows"] >= 5
    assert sum(scores["by_cause"].values()) == len(scores["misses"]) == round(5 - official["exact_match"] / 20)
    assert "train.json" in scores["note"]


def test_counts_add_up(made):
    output, counts = made
    assert counts["train_questions"] == 10
    assert counts["train_windows"] >= 10 > counts["train_windows_without_answer"]
    assert counts["questions_cut"] == load(output / "scores.json")["questions_cut"] > 0  # at 12 pieces some are
    assert counts["steps"] == round(40 * counts["train_windows"] / 8)


def test_it_learns(made):
    output, counts = made
    losses = [line["loss"] for line in map(json.loads, (output / "metrics.jsonl").read_text().splitlines())]
    assert losses[-1] < losses[0] / 2
    assert counts["f1"] > 50  # the questions scored are among those learned


def test_the_model_carries_what_answering_needs(made):
    reader = Reader.load(made[0] / "model", "cpu")
    assert reader.settings == SETTINGS.reading()
    context = ARTICLES[0][1]
    found = reader.answer(context, "한강은 어디에서 시작하는가?")
    assert context[slice(*found["span"])] == found["answer"]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from pipelines import reading
from pipelines.tasks import KORQUAD
from test_stage_korquad import SETTINGS, inputs, runtime

steps, loss = 0, reading.reading_loss

def deadly(model, batch):
    global steps
    steps += 1
    if steps > 15:
        os.kill(os.getpid(), signal.SIGKILL)
    return loss(model, batch)

reading.reading_loss = deadly
root = Path(sys.argv[1])
KORQUAD.run(SETTINGS, inputs(root), root / "killed", runtime(root))
"""


def test_a_killed_run_goes_on_to_the_same_bytes(made, root, monkeypatch):
    output = root / "killed"
    output.mkdir()
    command = [sys.executable, "-c", KILLED, str(root), str(Path(__file__).parent)]
    assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL
    assert not (output / "model").exists()

    def again(*args, **kwargs):
        raise AssertionError("a text was analysed again")

    monkeypatch.setattr(Tokenizer, "pieces_of_many", again)
    KORQUAD.run(SETTINGS, inputs(root), output, runtime(root))
    starts = [
        line for line in map(json.loads, (output / "timing.jsonl").read_text().splitlines()) if line["kind"] == "start"
    ]
    assert [line["step"] for line in starts] == [0, 10]
    assert digests(output) == digests(made[0])


def test_a_run_that_was_cut_off_behind_training_is_finished(made, root):
    output = root / "late"
    shutil.copytree(made[0], output)
    for name in ("scores.json", "submission/predict.py"):
        (output / name).unlink()
    KORQUAD.run(SETTINGS, inputs(root), output, runtime(root))
    assert digests(output) == digests(made[0])


@pytest.fixture(scope="module")
def warmed(root):
    """An artifact with a warm-up, and its counts."""
    (root / "made.json").write_text(json.dumps(document(ARTICLES[:2]), ensure_ascii=False), encoding="utf-8")
    output = root / "warmed"
    output.mkdir()
    return output, KORQUAD.run(WARM, inputs(root, **WARM_FILES), output, runtime(root))


WARM_FILES = {"train": "train.json", "valid": "valid.json", "warm_up": "made.json"}
WARM = KorquadSettings.model_validate(
    {**SETTINGS.model_dump(), "epochs": 2.0, "warm_up": "made.json", "warm_up_epochs": 20.0}
)


def test_a_warm_up_is_learned_first(warmed, root, tmp_path):
    output, counts = warmed
    assert counts["warm_up_questions"] == 5
    warm, own = (
        [json.loads(line)["loss"] for line in (output / name).read_text().splitlines()]
        for name in ("warm_up.jsonl", "metrics.jsonl")
    )
    assert warm[-1] < warm[0] / 2
    cold = WARM.model_copy(update={"warm_up": ""})
    KORQUAD.run(cold, inputs(root), tmp_path, runtime(root))
    first = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])["loss"]
    assert own[0] < first  # some of the questions are known by now
    assert not (tmp_path / "warm_up.jsonl").exists()


def test_a_run_killed_behind_its_warm_up_goes_on_to_the_same_bytes(warmed, root):
    output, counts = warmed
    total = counts["warm_up_steps"]
    for name, after in (("during", total - 3), ("behind", total + 2)):
        killed = root / f"killed-{name}"
        killed.mkdir()
        code = KILLED.replace("steps > 15", f"steps > {after}").replace("SETTINGS, inputs(root), root / \"killed\"",
                              f"WARM, inputs(root, **WARM_FILES), root / 'killed-{name}'")  # fmt: skip
        code = code.replace("import SETTINGS,", "import WARM, WARM_FILES,")
        command = [sys.executable, "-c", code, str(root), str(Path(__file__).parent)]
        assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL
        KORQUAD.run(WARM, inputs(root, **WARM_FILES), killed, runtime(root))
        assert digests(killed) == digests(output)


FEW = SETTINGS.model_copy(update={"epochs": 1.0})


def test_one_file_split_by_article(root, tmp_path):
    articles = [(f"글 {i}", *rest) for i, (_, *rest) in enumerate(ARTICLES * 3)]
    (root / "official.json").write_text(json.dumps(document(articles), ensure_ascii=False), encoding="utf-8")
    settings = KorquadSettings.model_validate({**FEW.model_dump(), "split_by_article": True})
    counts = KORQUAD.run(settings, inputs(root, official="official.json"), tmp_path, runtime(root))
    held = [a for a in articles if int(hashlib.sha256(a[0].encode()).hexdigest(), 16) % 5 == 0]
    assert counts["count"] == sum(len(a) - 2 for a in held) > 0
    assert counts["train_questions"] == sum(len(a) - 2 for a in articles) - counts["count"]
    assert "Not comparable with published scores" in load(tmp_path / "scores.json")["note"]


def test_a_split_that_leaves_nothing(root, tmp_path):
    (root / "one.json").write_text(json.dumps(document(ARTICLES[:1]), ensure_ascii=False), encoding="utf-8")
    settings = KorquadSettings.model_validate({**FEW.model_dump(), "split_by_article": True})
    with pytest.raises(
        SettingsError, match=r"one\.json: split_by_article leaves . training and . validation questions"
    ):
        KORQUAD.run(settings, inputs(root, official="one.json"), tmp_path, runtime(root))


def test_from_scratch_needs_no_pretraining(made, root, tmp_path):
    shutil.copytree(made[0] / "work", tmp_path / "work")  # texts that are analysed already
    settings = KorquadSettings.model_validate(
        {**FEW.model_dump(), "init": "scratch", "encoder": {**SIZES, "vocab_size": 1000, "architecture": "bert"}}
    )
    given = inputs(root)
    counts = KORQUAD.run(settings, Inputs({"vocab": given.artifacts["vocab"]}, given.files), tmp_path, runtime(root))
    assert counts["count"] == 5
    assert load(tmp_path / "model" / "config.json")["encoder"]["vocab_size"] > 1000  # the vocabulary's


def test_a_model_pretrained_with_fewer_positions(root, tmp_path):
    settings = SETTINGS.model_copy(update={"max_length": 128})
    with pytest.raises(SettingsError, match=r"korquad\.max_length 128 is more than the 64 positions"):
        KORQUAD.run(settings, inputs(root), tmp_path, runtime(root))


def test_a_model_pretrained_with_another_tokenizer(root, tmp_path, monkeypatch):
    from pipelines import reading

    model, _ = reading.load_model(root / "pretrain" / "model", "pretraining")
    other = type("Other", (), {"digest": "0" * 64})()
    monkeypatch.setattr(reading, "load_model", lambda *args: (model, other))
    with pytest.raises(ModelError, match="another tokenizer than the vocab stage's: rebuild pretrain"):
        KORQUAD.run(SETTINGS, inputs(root), tmp_path, runtime(root))


def test_a_file_that_is_not_korquad(root, tmp_path):
    (root / "reviews.json").write_text('{"rows": []}', encoding="utf-8")
    with pytest.raises(CorpusError, match=r'reviews\.json: no "data" there'):
        KORQUAD.run(SETTINGS, inputs(root, train="reviews.json", valid="valid.json"), tmp_path, runtime(root))
    assert not list(tmp_path.iterdir())
