"""Answers to a hidden test set, and the folder to hand in, run as a judge would: what is wrong with it is found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from korbert.errors import ArtifactError, CorpusError, ModelError
from korbert.pipelines import cli
from korbert.pipelines.submission.bundle import check, score, submit, write_submission
from korbert.system.durable import read_json

CONTEXT = "한강은 강원도에서 시작해 서울을 지나 황해로 흐른다."
QUESTIONS = {"6548850-0-0": ("한강은 어디에서 시작하는가?", "강원도"), "가": ("어디를 지나는가?", "서울")}
ODD_CONTEXT = f"{CONTEXT}\r\n예전에는 아리수(阿利水)라고도 불렸다 🙂"
ODD_QUESTIONS = {"6548850-0-0": "한강은 어디에서 시작하는가?", "가": "예전 이름은?", "빈 질문": ""}

ANSWERS = """
import json, os, sys
document = json.load(open(sys.argv[1], encoding="utf-8"))
asked = [qa["id"] for article in document["data"] for p in article["paragraphs"] for qa in p["qas"]]
answers = dict.fromkeys(asked, "강원도")
{}
json.dump(answers, open(sys.argv[2], "w", encoding="utf-8"), ensure_ascii=False)
"""

# Loaded by Python at its start: refuses every socket and libraries that requirements.txt does not name, and tells at
# the end where korbert came from.
GUARD = """
import atexit, socket, sys

def refuse(*args, **kwargs):
    raise OSError("no sockets here")

socket.socket.__init__ = refuse
socket.getaddrinfo = refuse
sys.modules.update(dict.fromkeys(("pyarrow", "zstandard", "pandas", "sklearn", "datasets")))
atexit.register(lambda: print(sys.modules["korbert"].__file__ if "korbert" in sys.modules else "no korbert"))
"""


def dataset(path, asked, context=CONTEXT):
    """A file of questions on a text. asked: id -> a question and its answer, or a question alone."""
    qas = []
    for id, question in asked.items():
        question, *answers = [question] if isinstance(question, str) else question
        found = [{"text": answer, "answer_start": context.index(answer)} for answer in answers]
        qas.append({"id": id, "question": question} | ({"answers": found} if found else {}))
    data = [{"title": "한강", "paragraphs": [{"context": context, "qas": qas}]}]
    path.write_text(json.dumps({"version": "KorQuAD_v1.0", "data": data}, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.fixture
def asked(tmp_path):
    return dataset(tmp_path / "asked.json", QUESTIONS)


@pytest.fixture
def bundle(tmp_path):
    """Writes a submission whose program answers 강원도 everywhere; the argument is more code for it."""

    def made(more=""):
        folder = tmp_path / "submission"
        folder.mkdir(exist_ok=True)
        (folder / "predict.py").write_text(ANSWERS.format(more), encoding="utf-8")
        return folder

    return made


@pytest.mark.slow  # as tests/whole/test_mission.py has one
def test_a_real_submission_passes(untrained_reader, tmp_path, asked):
    write_submission(untrained_reader, tmp_path / "korquad" / "submission")
    found = check(tmp_path / "korquad", asked)
    submit(untrained_reader, asked, tmp_path / "here.json", device="cpu")
    assert (found.questions, found.scores) == (2, score(asked, tmp_path / "here.json"))
    assert found.seconds > 0
    assert found.memory > 50_000_000  # torch is loaded


def test_the_place_is_fresh_and_the_environment_empty(bundle, asked, monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    folder = bundle(
        "home = os.environ['HOME']\n"
        "there = sorted(os.listdir('.')), sorted(os.listdir(home)), os.listdir(os.path.dirname(__file__))\n"
        "assert there == (['questions.json'], [], ['predict.py']), there\n"
        "extra = set(os.environ) - {'PATH', 'HOME', 'LC_CTYPE'}\n"  # Python itself sets the last one
        "assert not extra, extra\n"
        "assert sys.path[0] == os.path.dirname(__file__)\n"
    )
    assert check(folder, asked).scores == {"exact_match": 50.0, "f1": 50.0}
    assert check(bundle(""), dataset(asked, ODD_QUESTIONS)).scores is None  # no answers to compare with


@pytest.mark.parametrize(("code", "said"), [
    ("del answers['가']", "1 of 2 ids, such as '가', without an answer: answer every question"),
    ("answers['나'] = ''", "1 of 2 ids, such as '나', not among the questions"),
    ("answers['가'] = 3", "not a predictions file; it must be one JSON object of question id and answer text"),
    ("answers = list(answers)", "not a predictions file"),
    ("open(sys.argv[2], 'wb').write('{\"가\": \"강\"}'.encode('cp949')); sys.exit(0)", "byte 2 is not UTF-8"),
    ("open(sys.argv[2], 'wb').write(b'{'); sys.exit(0)", "not JSON"),
    ("sys.exit(0)", "no such file"),
])  # fmt: skip
def test_wrong_answers_are_named(bundle, asked, code, said):
    with pytest.raises(ModelError, match=rf"predictions\.json(, line 1)?: .*{said}"):
        check(bundle(code), asked)


@pytest.mark.parametrize(("code", "said"), [
    ("raise RuntimeError('모델이 없다')", r"exit code 1: fix the error: .*RuntimeError: 모델이 없다"),
    ("sys.exit(3)", "ended with exit code 3: fix the error: no output"),
    ("import signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"),
])  # fmt: skip
def test_a_crash_is_told_in_its_own_words(bundle, asked, code, said):
    with pytest.raises(ModelError, match=said):
        check(bundle(code), asked)


def test_what_never_ends_is_ended(bundle, asked):
    folder = bundle("import time\nwhile True: time.sleep(1)\n")
    with pytest.raises(ModelError, match=r"was stopped after 1\.0.s: .* allow more with --time-limit"):
        check(folder, asked, limit_seconds=1)


def test_what_is_no_bundle_or_no_dataset_is_refused(bundle, tmp_path):
    with pytest.raises(ArtifactError, match=r"has no predict\.py: name the folder submission/ of a korquad artifact"):
        check(tmp_path)
    with pytest.raises(CorpusError, match=r"nowhere\.json: no such file"):
        check(bundle(""), tmp_path / "nowhere.json")
    assert not [path for path in bundle("").iterdir() if path.name != "predict.py"]


def test_the_command(bundle, asked, tmp_path, command):
    folder = str(bundle(""))
    said = command("submit", "--check", folder, "--dataset", asked).out
    assert f"2 questions of {asked}, each answered" in said
    assert "exact match: 50.00, F1: 50.00" in said
    measured = json.loads(command("submit", "--check", folder, "--dataset", asked, "--json").out)
    assert measured["scores"] == {"exact_match": 50.0, "f1": 50.0}
    assert {"dataset", "questions", "seconds", "memory"} < measured.keys()
    assert cli.run_command(["submit", "--check", folder]) == 0  # on the questions that korbert carries
    bundle("answers.clear()")
    assert "without an answer" in command("submit", "--check", folder, code=1).err
    assert "--check takes BUNDLE alone" in command("submit", "--check", folder, "model", code=2).err
    assert "name MODEL INPUT OUTPUT, or --check BUNDLE" in command("submit", "model", "input.json", code=2).err
    wrong = ["model", "a.json", "b.json", "--dataset", "c"]
    assert "--dataset is for --check BUNDLE" in command("submit", *wrong, code=2).err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked.json", "submission"]
    assert [path.name for path in Path(folder).iterdir()] == ["predict.py"]


# --- answers, and the folder that gives them ---


@pytest.fixture(scope="module")
def hidden(tmp_path_factory):
    """A file as the hidden test set may be: no answers in it."""
    return dataset(tmp_path_factory.mktemp("asked") / "KorQuAD_v1.0_test.json", ODD_QUESTIONS, ODD_CONTEXT)


@pytest.fixture(scope="module")
def answered(untrained_reader, hidden, tmp_path_factory):
    output = tmp_path_factory.mktemp("answered") / "predictions.json"
    assert submit(untrained_reader, hidden, output, device="cpu") == 3
    return output


def test_submit_answers_every_question_or_refuses_before_it_works(untrained_reader, hidden, answered, tmp_path):
    predictions = read_json(answered)
    assert list(predictions) == list(ODD_QUESTIONS)
    assert all(answer and answer in ODD_CONTEXT for answer in predictions.values())
    assert [path.name for path in answered.parent.iterdir()] == ["predictions.json"]
    (tmp_path / "broken.json").write_text('{"data": [{"paragraphs": 3}]}', encoding="utf-8")
    for model, asked, error, said in (
        (untrained_reader, tmp_path / "broken.json", CorpusError, r"broken\.json, record 1: article 0 has no list of"),
        (tmp_path / "empty", hidden, ModelError, "no such folder"),
    ):
        with pytest.raises(error, match=said):
            submit(model, asked, tmp_path / "predictions.json")
    assert not (tmp_path / "predictions.json").exists()


def test_score_of_two_files(tmp_path):
    dev = tmp_path / "dev.json"
    predictions = tmp_path / "predictions.json"
    dataset(dev, {"a": ("?", "강원도"), "b": ("?", "강원도")})
    predictions.write_text(json.dumps({"a": "강원도", "b": "강원도에서"}), encoding="utf-8")
    assert score(dev, predictions) == {"exact_match": 50.0, "f1": pytest.approx(50 + 50 * 0.75)}
    for file, said in (
        (predictions, r"predictions\.json: no column 'id' for id among a, b"),
        (dev, r"dev\.json: not a predictions file; it must be one JSON object"),
    ):
        with pytest.raises(CorpusError, match=said):
            score(file, file)
    for content in (
        '{"a": 1e999}',
        '{"a": NaN}',
        '{"a": null}',
        '{"a": ' + "9" * 5_000 + "}",
        "[" * 100_000,
        '["가"]',
        '{"a": ["가"]}',
    ):
        predictions.write_text(content)
        with pytest.raises(CorpusError, match=r"predictions\.json(, line 1)?: not (JSON|a predictions file)"):
            score(str(dev), str(predictions))


def run(folder, arguments, work):
    guard = work / "guard"
    guard.mkdir(exist_ok=True)
    (guard / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(guard), "HF_HUB_OFFLINE": "1", "HOME": str(work)}
    command = [sys.executable, str(folder / "predict.py"), *map(str, arguments)]
    return subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_predict_runs_elsewhere_without_network_on_the_code_beside_it(untrained_reader, hidden, answered, tmp_path):
    write_submission(untrained_reader, tmp_path / "submission")
    (tmp_path / "elsewhere").mkdir()
    folder = (tmp_path / "submission").rename(tmp_path / "elsewhere" / "submission")
    done = run(folder, [hidden, "predictions.json"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(folder / "korbert" / "__init__.py")
    assert read_json(tmp_path / "predictions.json") == read_json(answered)
    assert {path.name for path in folder.iterdir()} == {"predict.py", "requirements.txt", "model", "korbert"}
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert all("==" in line and "+" not in line and "/" not in line for line in lines)
    assert "kiwipiepy==0.24.1" in lines
    names = {path.relative_to(folder / "korbert").as_posix() for path in (folder / "korbert").rglob("*")}
    assert "tasks/question_answering/answers.py" in names
    assert not [name for name in names if name.startswith("box") or "__pycache__" in name]
    wrong = run(folder, [tmp_path / "absent.json", "predictions.json"], tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert wrong.stderr.endswith("absent.json: no such file: check its name and folder\n")
    used = run(folder, ["one.json"], tmp_path)
    assert used.returncode == 2
    assert "python predict.py INPUT.json OUTPUT.json" in used.stderr
