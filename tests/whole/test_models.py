"""What people do with the models of a run: fill, predict, submit, score, export, load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import korbert
from korbert.tasks.classification import Classifier
from korbert.tasks.filling import Filler
from korbert.tasks.reading import Reader
from tests.whole.conftest import Whole


def _korbert(*arguments: str | Path, code: int = 0, given: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "korbert", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, input=given)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_load_gives_what_the_folder_holds(whole: Whole) -> None:
    filler = korbert.load(whole.folder / "pretrain" / "model")
    assert isinstance(filler, Filler)
    (candidates,) = filler.fill("오늘 [MASK] 정말 좋다", top=5)
    assert len(candidates) == 5
    assert [c.probability for c in candidates] == sorted((c.probability for c in candidates), reverse=True)
    classifier = korbert.load(whole.folder / "nsmc" / "model")
    assert isinstance(classifier, Classifier)
    (prediction,) = classifier.predict(["정말 좋은 영화"])
    assert prediction["label"] in ("부정", "긍정")
    assert sum(prediction["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    reader = korbert.load(whole.folder / "korquad" / "model")
    assert isinstance(reader, Reader)
    context = "세종은 1443년에 한글을 만들었다."
    answer = reader.answer(context, "한글은 언제 만들어졌나?")
    start, end = answer["span"]
    assert answer["answer"] == context[start:end]


def test_fill_and_its_misuse(whole: Whole) -> None:
    model = whole.folder / "pretrain" / "model"
    assert len(_korbert("fill", model, "오늘 [MASK] 정말 [MASK]").stdout.splitlines()) == 10
    assert "has no [MASK]" in _korbert("fill", model, "오늘", code=1).stderr
    assert "has learned a task" in _korbert("fill", whole.folder / "nsmc" / "model", "[MASK]", code=1).stderr
    assert "no such file" in _korbert("fill", whole.folder / "nowhere", "[MASK]", code=1).stderr


def test_predict_reads_lines(whole: Whole) -> None:
    done = _korbert("predict", whole.folder / "nsmc" / "model", given="정말 좋다\n\n별로다\n")
    assert [set(json.loads(line)) for line in done.stdout.splitlines()] == [{"label", "probabilities"}] * 3
    line = json.dumps({"context": "서울은 한국의 수도이다.", "question": "수도는?"}, ensure_ascii=False)
    done = _korbert("predict", whole.folder / "korquad" / "model", given=line + "\n")
    assert set(json.loads(done.stdout)) == {"answer", "span", "score"}
    said = _korbert("predict", whole.folder / "korquad" / "model", given="{}\n", code=1).stderr
    assert "line 1" in said


def test_submit_and_score_agree_with_the_stage(whole: Whole, data: Path, tmp_path: Path) -> None:
    output = tmp_path / "predictions.json"
    _korbert("submit", whole.folder / "korquad" / "model", data / "valid.json", output)
    assert json.loads(output.read_text()) == json.loads((whole.folder / "korquad" / "predictions.json").read_text())
    score = json.loads(_korbert("score", data / "valid.json", output).stdout)
    recorded = json.loads((whole.folder / "korquad" / "scores.json").read_text())
    assert score == {key: pytest.approx(recorded[key]) for key in ("exact_match", "f1")}


def test_a_file_that_is_not_korquad(whole: Whole, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"data": [{"title": "가"}]}', encoding="utf-8")
    model = whole.folder / "korquad" / "model"
    assert "data[0]" in _korbert("submit", model, tmp_path / "other.json", tmp_path / "out.json", code=1).stderr


@pytest.mark.parametrize("stage", ["pretrain", "nsmc", "korquad"])
def test_export_has_the_same_logits(whole: Whole, tmp_path: Path, stage: str) -> None:
    done = _korbert("export", whole.folder / stage / "model", tmp_path / stage, "--check")
    assert "largest difference" in done.stdout


def test_a_model_with_another_tokenizer(whole: Whole, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(whole.folder / "pretrain" / "model", tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    config["tokenizer_digest"] = "0" * 64
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    assert "tokenizer" in _korbert("fill", tmp_path / "model", "[MASK]", code=1).stderr
