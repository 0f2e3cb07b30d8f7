import json
import os
import subprocess
import sys

import pytest

from korbert.errors import CorpusError, ModelError
from korbert.pipelines.submission.writing import score, submit, write_submission

CONTEXT = "한강은 강원도에서 시작해 서울을 지나 황해로 흐른다.\r\n예전에는 아리수(阿利水)라고도 불렸다 🙂"
QUESTIONS = {"6548850-0-0": "한강은 어디에서 시작하는가?", "가": "예전 이름은?", "빈 질문": ""}

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


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A file as the hidden test set may be: no answers in it."""
    qas = [{"id": id, "question": question} for id, question in QUESTIONS.items()]
    data = [{"title": "한강", "paragraphs": [{"context": CONTEXT, "qas": qas}]}]
    path = tmp_path_factory.mktemp("asked") / "KorQuAD_v1.0_test.json"
    path.write_text(json.dumps({"version": "KorQuAD_v1.0_test", "data": data}, ensure_ascii=False), encoding="utf-8")
    return path


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def answered(untrained_reader, asked, tmp_path_factory):
    """What submit writes for these questions."""
    output = tmp_path_factory.mktemp("answered") / "predictions.json"
    assert submit(untrained_reader, asked, output, device="cpu") == 3
    return output


def test_submit_answers_every_question(answered):
    predictions = load(answered)
    assert list(predictions) == list(QUESTIONS)
    assert all(answer and answer in CONTEXT for answer in predictions.values())
    assert [path.name for path in answered.parent.iterdir()] == ["predictions.json"]


def test_submit_refuses_before_it_works(untrained_reader, asked, tmp_path):
    (tmp_path / "broken.json").write_text('{"data": [{"paragraphs": 3}]}', encoding="utf-8")
    with pytest.raises(CorpusError, match=r"broken\.json, record 1: article 0 has no list of paragraphs"):
        submit(untrained_reader, tmp_path / "broken.json", tmp_path / "predictions.json")
    with pytest.raises(ModelError, match="no such file"):
        submit(tmp_path / "empty", asked, tmp_path / "predictions.json")
    assert not (tmp_path / "predictions.json").exists()


def test_score_of_two_files(tmp_path):
    qas = [{"id": id, "question": "?", "answers": [{"text": "강원도", "answer_start": 4}]} for id in ("a", "b")]
    dataset = {"data": [{"title": "한강", "paragraphs": [{"context": CONTEXT, "qas": qas}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(dataset), encoding="utf-8")
    (tmp_path / "predictions.json").write_text(json.dumps({"a": "강원도", "b": "강원도에서"}), encoding="utf-8")
    found = score(tmp_path / "dev.json", tmp_path / "predictions.json")
    assert found == {"exact_match": 50.0, "f1": pytest.approx(50 + 50 * 0.75)}
    with pytest.raises(CorpusError, match=r"predictions\.json: an object without a list of objects"):
        score(tmp_path / "predictions.json", tmp_path / "predictions.json")
    with pytest.raises(CorpusError, match=r"dev\.json: not a predictions file"):
        score(tmp_path / "dev.json", tmp_path / "dev.json")
    for content in ('{"a": 1e999}', '{"a": NaN}', '{"a": null}', '{"a": ' + "9" * 5_000 + "}", "[" * 100_000):
        (tmp_path / "predictions.json").write_text(content)
        with pytest.raises(CorpusError, match=r"predictions\.json(, line 1)?: not (JSON|a predictions file)"):
            score(str(tmp_path / "dev.json"), str(tmp_path / "predictions.json"))


def test_the_folder_holds_what_is_handed_in(untrained_reader, tmp_path):
    write_submission(untrained_reader, tmp_path / "submission")
    names = {path.name for path in (tmp_path / "submission").iterdir()}
    assert names == {"predict.py", "requirements.txt", "model", "korbert"}
    lines = (tmp_path / "submission" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert all("==" in line and "+" not in line and "/" not in line for line in lines)
    assert "kiwipiepy==0.24.1" in lines


def run(folder, arguments, work):
    guard = work / "guard"
    guard.mkdir(exist_ok=True)
    (guard / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(guard), "HF_HUB_OFFLINE": "1", "HOME": str(work)}
    command = [sys.executable, str(folder / "predict.py"), *map(str, arguments)]
    return subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_predict_runs_elsewhere_without_network_on_the_code_beside_it(untrained_reader, asked, answered, tmp_path):
    write_submission(untrained_reader, tmp_path / "submission")
    (tmp_path / "elsewhere").mkdir()
    folder = (tmp_path / "submission").rename(tmp_path / "elsewhere" / "submission")
    done = run(folder, [asked, "predictions.json"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(folder / "korbert" / "__init__.py")
    assert load(tmp_path / "predictions.json") == load(answered)
    names = {path.relative_to(folder / "korbert").as_posix() for path in (folder / "korbert").rglob("*")}
    assert "tasks/question_answering/answers.py" in names
    assert not [name for name in names if name.startswith("box") or "__pycache__" in name]


def test_predict_says_what_is_wrong_in_one_line(untrained_reader, tmp_path):
    write_submission(untrained_reader, tmp_path / "submission")
    done = run(tmp_path / "submission", [tmp_path / "absent.json", "predictions.json"], tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("absent.json: no such file: check its name and folder\n")
    assert done.stderr.count("\n") == 1
    used = run(tmp_path / "submission", ["one.json"], tmp_path)
    assert used.returncode == 2
    assert "python predict.py INPUT.json OUTPUT.json" in used.stderr
