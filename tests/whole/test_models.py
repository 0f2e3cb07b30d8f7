"""What people do with the models of a run: fill, predict, submit, score, export, load."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import korbert
from corpus.counts import form_counts
from korbert.tokenization import Analyzer, AnalyzerOptions, Tokenizer, VocabularySettings, learn
from tests.running import Outcome, run_here


def _korbert(*arguments: str | Path, code: int = 0, stdin: str = "") -> Outcome:
    done = run_here([*map(str, arguments)], Path.cwd(), stdin.encode())
    assert done.code == code, done.out + done.err
    assert "Traceback" not in done.err
    return done


def test_load_gives_what_the_folder_holds(whole):
    filler = korbert.load(whole.folder / "pretrain" / "model")
    (candidates,) = filler.fill("오늘 [MASK] 정말 좋다", top=5)
    assert len(candidates) == 5
    assert [c.probability for c in candidates] == sorted((c.probability for c in candidates), reverse=True)
    classifier = korbert.load(whole.folder / "nsmc" / "model")
    (prediction,) = classifier.predict(["정말 좋은 영화"])
    assert prediction.label in ("부정", "긍정")
    assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-5)
    reader = korbert.load(whole.folder / "korquad" / "model")
    context = "세종은 1443년에 한글을 만들었다."
    answer = reader.answer("한글은 언제 만들어졌나?", context)
    assert answer.answer == context[answer.start : answer.end]


def test_fill(whole):
    model = whole.folder / "pretrain" / "model"
    assert len(_korbert("fill", model, "오늘 [MASK] 정말 [MASK]").out.splitlines()) == 10


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("fill", "pretrain/model", "오늘"), "has no [MASK]"),
        (
            ("fill", "nsmc/model", "[MASK]"),
            "is a classification model: it can predict and embed; gaps",
        ),
        (("fill", "nowhere", "[MASK]"), "no such file"),
        (("predict", "korquad/model", "empty.json"), "line 1"),
        (("submit", "korquad/model", "other.json", "out.json"), "no column 'id' for id among title"),
    ],
)
def test_misuse_is_said(whole, tmp_path, command, said):
    (tmp_path / "other.json").write_text('{"data": [{"title": "가"}]}', encoding="utf-8")
    (tmp_path / "empty.json").write_text("{}\n", encoding="utf-8")
    name, model, *others = command
    given = [str(tmp_path / other) if other.endswith(".json") else other for other in others]
    assert said in _korbert(name, whole.folder / model, *given, code=1).err


def test_predict_reads_lines(whole):
    done = _korbert("predict", whole.folder / "nsmc" / "model", stdin="정말 좋다\n\n별로다\n")
    keys = {"line", "text", "label", "probabilities"}
    assert [set(json.loads(line)) for line in done.out.splitlines()] == [keys] * 3
    line = json.dumps({"context": "서울은 한국의 수도이다.", "question": "수도는?"}, ensure_ascii=False)
    done = _korbert("predict", whole.folder / "korquad" / "model", stdin=line + "\n")
    assert set(json.loads(done.out)) == {"line", "question", "answer", "start", "end", "score"}


def test_submit_and_score_agree_with_the_stage(whole, data, tmp_path):
    output = tmp_path / "predictions.json"
    _korbert("submit", whole.folder / "korquad" / "model", data / "valid.json", output)
    assert json.loads(output.read_text()) == json.loads((whole.folder / "korquad" / "predictions.json").read_text())
    score = json.loads(_korbert("score", data / "valid.json", output).out)
    recorded = json.loads((whole.folder / "korquad" / "scores.json").read_text())["rows"][0]["scores"]
    assert score == {key: pytest.approx(100 * recorded[key]) for key in ("exact_match", "f1")}


@pytest.mark.parametrize("stage", ["pretrain", "korquad", pytest.param("nsmc", marks=pytest.mark.slow)])
def test_export_has_the_same_logits(whole, tmp_path, stage):
    done = _korbert("export", whole.folder / stage / "model", tmp_path / stage, "--check")
    assert "largest difference" in done.out


@pytest.mark.parametrize(
    "other", [{"size": 1_500}, pytest.param({"mark": "eojeol"}, marks=pytest.mark.slow)], ids=["size", "mark"]
)
def test_a_model_with_another_tokenizer(whole, tmp_path, other):
    """One that is whole in itself, of other pieces or of the same number of them."""
    settings = VocabularySettings.model_validate({"size": 1_600, **other})
    vocabulary = learn(form_counts(whole.folder / "vocab" / "counts.parquet", settings), settings)
    tokenizer = Tokenizer(vocabulary, settings, AnalyzerOptions(), Analyzer().versions)
    shutil.copytree(whole.folder / "pretrain" / "model", tmp_path / "model")
    shutil.rmtree(tmp_path / "model" / "tokenizer")
    tokenizer.save(tmp_path / "model" / "tokenizer")
    own = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))["tokenizer_digest"]
    (said,) = _korbert("fill", tmp_path / "model", "오늘 [MASK]", code=1).err.splitlines()
    assert said == (
        f"korbert: {tmp_path / 'model' / 'tokenizer'}: digest {tokenizer.digest[:12]}, the model was trained with "
        f"{own[:12]}: restore the tokenizer that came with the model"
    )


def test_the_submission_answers_from_another_folder(whole, data, tmp_path):
    """Sockets are blocked and hubs offline, as in every process of these tests (tests/offline)."""
    script = shutil.copytree(whole.folder / "korquad" / "submission", tmp_path / "handed in") / "predict.py"
    (tmp_path / "elsewhere").mkdir()
    command = [sys.executable, str(script), str(data / "valid.json"), "predictions.json"]
    done = subprocess.run(command, cwd=tmp_path / "elsewhere", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = (tmp_path / "elsewhere" / "predictions.json").read_bytes()
    assert answers == (whole.folder / "korquad" / "predictions.json").read_bytes()
