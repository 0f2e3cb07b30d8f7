"""A folder to hand in, run as a judge would: what is wrong with it is found before a judge finds it."""

import json
import socket
import time
from pathlib import Path

import pytest

from korbert.errors import ArtifactError, CorpusError, ModelError
from korbert.pipelines import cli
from korbert.pipelines.submission.check import check, worksheet
from korbert.pipelines.submission.writing import score, submit, write_submission
from tests.running import is_alive

CONTEXT = "한강은 강원도에서 시작해 서울을 지나 황해로 흐른다."
QUESTIONS = {"6548850-0-0": ("한강은 어디에서 시작하는가?", "강원도"), "가": ("어디를 지나는가?", "서울")}

ANSWERS = """
import json, os, sys
document = json.load(open(sys.argv[1], encoding="utf-8"))
asked = [qa["id"] for article in document["data"] for p in article["paragraphs"] for qa in p["qas"]]
answers = dict.fromkeys(asked, "강원도")
{}
json.dump(answers, open(sys.argv[2], "w", encoding="utf-8"), ensure_ascii=False)
"""


def questions(path, *, answered):
    qas = [
        {"id": id, "question": question}
        | ({"answers": [{"text": answer, "answer_start": CONTEXT.index(answer)}]} if answered else {})
        for id, (question, answer) in QUESTIONS.items()
    ]
    data = [{"title": "한강", "paragraphs": [{"context": CONTEXT, "qas": qas}]}]
    path.write_text(json.dumps({"version": "KorQuAD_v1.0", "data": data}, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.fixture
def asked(tmp_path):
    return questions(tmp_path / "asked.json", answered=True)


@pytest.fixture
def bundle(tmp_path):
    """A folder whose program answers 강원도 everywhere, and does something more."""

    def made(more=""):
        folder = tmp_path / "submission"
        folder.mkdir(exist_ok=True)
        (folder / "predict.py").write_text(ANSWERS.format(more), encoding="utf-8")
        return folder

    return made


def test_a_real_submission_passes(untrained_reader, tmp_path, asked):
    write_submission(untrained_reader, tmp_path / "korquad" / "submission")
    found = check(tmp_path / "korquad", asked)
    submit(untrained_reader, asked, tmp_path / "here.json", device="cpu")
    assert found.questions == 2
    assert found.scores == score(asked, tmp_path / "here.json")
    assert found.seconds > 0
    assert found.memory is not None
    assert found.memory > 50_000_000  # torch is loaded
    assert not [note for note in found.notes if "requirements.txt" in note]


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


def test_without_answers_there_are_no_scores(bundle, tmp_path):
    assert check(bundle(""), questions(tmp_path / "hidden.json", answered=False)).scores is None


@pytest.fixture
def listening():
    """A port of this machine that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("import socket; socket.socket().connect(('127.0.0.1', {port}))", "socket.connect"),
        ("import urllib.request; urllib.request.urlopen('http://localhost:{port}')", "socket.getaddrinfo"),
    ],
)
def test_the_network_is_refused_even_if_nobody_notices(bundle, asked, listening, monkeypatch, code, event, cut):
    if not cut:
        monkeypatch.setattr("shutil.which", lambda name: None)
    quiet = f"try:\n    {code.format(port=listening)}\n    answers = {{}}\nexcept OSError: pass\n"
    with pytest.raises(
        ModelError, match=rf"predict\.py: used the network \({event} .*: put what it needs into"
    ) as told:
        check(bundle(quiet), asked)
    assert "predictions.json" not in str(told.value)  # it was refused, so the answers are all there


def test_the_korbert_that_is_installed_is_not_used(bundle, asked):
    with pytest.raises(ModelError, match="import of korbert halted"):
        check(bundle("import korbert"), asked)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("del answers['가']", "1 of 2 ids, such as '가', without an answer: answer every question"),
        ("answers['나'] = ''", "1 of 2 ids, such as '나', not among the questions"),
        ("answers['가'] = 3", "not a predictions file; it must be one JSON object of question id and answer text"),
        ("answers = list(answers)", "not a predictions file"),
        ("open(sys.argv[2], 'wb').write('{\"가\": \"강\"}'.encode('cp949')); sys.exit(0)", "byte 2 is not UTF-8"),
        ("open(sys.argv[2], 'wb').write(b'{'); sys.exit(0)", "not JSON"),
        ("sys.exit(0)", "no such file"),
    ],
)
def test_wrong_answers_are_named(bundle, asked, code, said):
    with pytest.raises(ModelError, match=rf"predictions\.json(, line 1)?: .*{said}"):
        check(bundle(code), asked)


def test_a_crash_is_told_in_its_own_words(bundle, asked):
    with pytest.raises(ModelError, match=r"ended with exit code 1: fix the error: .*RuntimeError: 모델이 없다"):
        check(bundle("raise RuntimeError('모델이 없다')"), asked)
    with pytest.raises(ModelError, match="ended with exit code 3: fix the error: no output"):
        check(bundle("sys.exit(3)"), asked)
    with pytest.raises(ModelError, match="was killed by SIGSEGV"):
        check(bundle("import signal; os.kill(os.getpid(), signal.SIGSEGV)"), asked)


def test_what_never_ends_is_ended_with_all_it_started(bundle, asked, tmp_path):
    note = tmp_path / "child"
    folder = bundle(
        "import subprocess, time\n"
        f"open({str(note)!r}, 'w').write(str(subprocess.Popen(['sleep', '600']).pid))\n"
        "while True: time.sleep(1)\n"
    )
    with pytest.raises(ModelError, match=r"was stopped after 3\.0.s: .* allow more with --time-limit"):
        check(folder, asked, limit_seconds=3)
    child, deadline = int(note.read_text(encoding="utf-8")), time.monotonic() + 10
    while is_alive(child) and time.monotonic() < deadline:  # a killed process may need a moment
        time.sleep(0.05)
    assert not is_alive(child)


def test_what_is_no_bundle_or_no_dataset_is_refused(bundle, tmp_path):
    with pytest.raises(ArtifactError, match=r"has no predict\.py: name the folder submission/ of a korquad artifact"):
        check(tmp_path)
    with pytest.raises(CorpusError, match=r"nowhere\.json: no such file"):
        check(bundle(""), tmp_path / "nowhere.json")
    assert not [path for path in bundle("").iterdir() if path.name != "predict.py"]


def test_other_libraries_than_those_pinned_are_noted(bundle, asked):
    folder = bundle("")
    (folder / "requirements.txt").write_text("torch==0.1\nnowhere==2\n", encoding="utf-8")
    notes = [note for note in check(folder, asked).notes if "requirements.txt" in note]
    assert notes[0].startswith("requirements.txt: torch 0.1, but this run used ")
    assert notes[1] == "requirements.txt: nowhere 2, but this run used absent"


def test_commands_of_a_worksheet(bundle):
    lines = worksheet(bundle(""), 700_000_000)
    assert lines[0] == f"cl upload {bundle('')} -n submission"
    assert "--request-memory 2g" in lines[2]
    assert "--request-memory 5g" in worksheet(bundle(""), 3_000_000_000)[2]
    assert [line.split()[1] for line in lines] == ["upload", "add", "run", "make", "macro"]


def test_the_command(bundle, asked, tmp_path, command):
    folder = str(bundle(""))
    said = command("submit", "--check", folder, "--dataset", asked).out
    assert f"2 questions of {asked}, each answered" in said
    assert "exact match: 50.00, F1: 50.00" in said
    assert "cl macro korquad-utils/dev-evaluate-v1.0 predictions-NAME" in said
    measured = json.loads(command("submit", "--check", folder, "--dataset", asked, "--json").out)
    assert measured["scores"] == {"exact_match": 50.0, "f1": 50.0}
    assert {"dataset", "questions", "seconds", "memory", "notes"} < measured.keys()
    assert cli.run_command(["submit", "--check", folder]) == 0  # on the questions that korbert carries
    bundle("answers.clear()")
    assert "without an answer" in command("submit", "--check", folder, code=1).err
    for wrong, text in (
        (["--check", folder, "model"], "--check takes BUNDLE alone"),
        (["model", "input.json"], "name MODEL INPUT OUTPUT, or --check BUNDLE"),
        (["model", "a.json", "b.json", "--dataset", "c"], "--dataset is for --check BUNDLE"),
    ):
        assert text in command("submit", *wrong, code=2).err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked.json", "submission"]
    assert [path.name for path in Path(folder).iterdir()] == ["predict.py"]
