"""A task that the table gets for this test: three labels, its own file format, all of it in toy_topics.py."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

from korbert.errors import CorpusError
from korbert.tasks import Classifier
from pipelines import classification
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.tasks import TASKS
from tests.pipelines import toy_topics

_BEGINNINGS = (
    ("오늘 비가 내린다", "내일 눈이 온다", "바람이 강하다"),
    ("물가가 올랐다", "은행 금리가 내렸다", "수출이 늘었다"),
    ("축구 경기에서 이겼다", "선수가 골을 넣었다", "야구 경기가 열렸다"),
)
_ENDINGS = ("", " 오늘", " 서울에서", "고 한다", " 정말", "!")
ROOT = Path(__file__).resolve().parents[2]
SETTINGS: dict[str, Any] = {
    "validation_share": 0.25,
    "max_length": 16,
    "batch_size": 16,
    "epochs": 2,
    "learning_rates": [1e-5, 1e-2],
    "seeds": [0, 1],
    "precision": "fp32",
    "threads": 1,
    "checkpoint_every": 4,
}


def _write(path: Path, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        topic = int(generator.choice(3, p=[0.5, 0.3, 0.2]))
        said = topic if generator.random() < 0.85 else int(generator.integers(3))  # so that scores are below 1
        text = f"{generator.choice(_BEGINNINGS[said])}{generator.choice(_ENDINGS)}"
        lines.append(f"{toy_topics.TOPICS[topic]}/{number}: {text}\n")
    path.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, task_artifacts: dict[str, Path]) -> Inputs:
    folder = tmp_path_factory.mktemp("topics")
    _write(folder / "train.txt", 200, seed=1)
    _write(folder / "test.txt", 80, seed=2)
    return Inputs(task_artifacts, {role: (folder / f"{role}.txt",) for role in ("train", "test")})


@pytest.fixture(autouse=True)
def _in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "topics", toy_topics.ENTRY)


def _run(inputs: Inputs, output: Path, **changes: Any) -> Counts:
    task = TASKS["topics"]
    settings = task.settings.model_validate(SETTINGS | changes)
    return task.run(settings, inputs, output, Runtime(root=output, data=output, workers=1, device="cpu"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, inputs: Inputs) -> tuple[Path, Counts]:
    """A run that nobody disturbed."""
    output = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "topics", toy_topics.ENTRY)
        return output, _run(inputs, output)


def _scores(output: Path) -> dict[str, Any]:
    scores: dict[str, Any] = json.loads((output / "scores.json").read_text("utf-8"))
    return scores


def test_a_task_is_under_sixty_lines() -> None:
    assert len(Path(toy_topics.__file__).read_text("utf-8").splitlines()) < 60


def test_the_table_of_scores_is_chosen_on_validation_and_has_a_row_a_seed(finished: tuple[Path, Counts]) -> None:
    rows = _scores(finished[0])["rows"]
    assert [(row["name"], row["seed"]) for row in rows] == [
        ("pretrained", 0),
        ("pretrained", 1),
        ("scratch", 0),
        ("scratch", 1),
        ("tfidf", 0),
    ]
    for row in rows[:4]:
        best = max(row["trials"], key=lambda trial: trial["validation_macro_f1"])
        assert row["learning_rate"] == best["learning_rate"] == 1e-2
    assert rows[4]["validation_macro_f1"] == max(trial["validation_macro_f1"] for trial in rows[4]["trials"])
    curves = {path.stem for path in (finished[0] / "metrics").iterdir()}
    assert curves == {f"{name}-rate-{rate}" for name in ("pretrained", "scratch") for rate in _TRAINED}


_TRAINED = ("1e-05-seed-0", "0.01-seed-0", "0.01-seed-1")  # the other seed tries the chosen rate alone


def test_scores_agree_with_scikit_learn(finished: tuple[Path, Counts]) -> None:
    output, counts = finished
    scores, table = _scores(output), pd.read_parquet(output / "predictions.parquet")
    assert list(table.columns) == ["id", "text", "label", "prediction", "probabilities", "unseen"]
    shares = np.stack(list(table["probabilities"]))
    assert shares.shape == (80, 3)
    assert (shares.argmax(axis=1) == table["prediction"]).all()
    tested = scores["rows"][0]["test"]
    for part, rows in (("all", table), ("unseen", table[table["unseen"]])):
        assert tested[part]["accuracy"] == pytest.approx(accuracy_score(rows["label"], rows["prediction"]))
        assert tested[part]["macro_f1"] == pytest.approx(f1_score(rows["label"], rows["prediction"], average="macro"))
        assert tested[part]["count"] == len(rows) > 0
    assert 0.5 < tested["all"]["macro_f1"] < 1
    assert scores["confusion"] == confusion_matrix(table["label"], table["prediction"]).tolist()
    assert counts["tfidf_macro_f1"] == scores["rows"][4]["test"]["all"]["macro_f1"] > 0.5
    assert "chosen on headlines held out" in scores["note"]


def test_the_model_gives_its_labels(finished: tuple[Path, Counts]) -> None:
    classifier = Classifier.load(finished[0] / "model", "cpu")
    assert classifier.labels == toy_topics.TOPICS
    table = pd.read_parquet(finished[0] / "predictions.parquet")
    said = [toy_topics.TOPICS.index(prediction["label"]) for prediction in classifier.predict(list(table["text"]))]
    assert said == table["prediction"].tolist()


def _digests(output: Path) -> dict[str, str]:
    files = (path for path in output.rglob("*") if path.is_file() and "work" not in path.parts)
    return {str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_run_that_was_cut_off_resumes(
    tmp_path: Path, inputs: Inputs, finished: tuple[Path, Counts], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[tuple[float, int]] = []
    finetune = classification.finetune

    def counted(*args: Any, **given: Any) -> Any:
        if len(trained) == 2:
            raise KeyboardInterrupt
        way = args[4]
        trained.append((way.learning_rate, given["seed"]))
        return finetune(*args, **given)

    monkeypatch.setattr(classification, "finetune", counted)
    with pytest.raises(KeyboardInterrupt):
        _run(inputs, tmp_path)
    monkeypatch.setattr(classification, "finetune", finetune)
    assert trained == [(1e-5, 0), (1e-2, 0)]
    first = tmp_path / "work" / "rows" / "pretrained-rate-1e-05-seed-0" / "timing.jsonl"
    before = first.stat().st_mtime_ns
    _run(inputs, tmp_path)
    assert first.stat().st_mtime_ns == before
    assert _digests(tmp_path) == _digests(finished[0])


def test_a_label_that_no_text_has_is_named(tmp_path: Path, inputs: Inputs) -> None:
    few = tmp_path / "few.txt"
    few.write_text("".join(f"날씨/{number}: 비가 온다\n" for number in range(40)), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"few\.txt: no training headlines have the label 경제, 운동: add"):
        _run(Inputs(inputs.artifacts, {**inputs.files, "train": (few,)}), tmp_path)


def test_one_entry_makes_it_a_stage(tmp_path: Path) -> None:
    """The table of tasks becomes stages when it is read: recipe, help, status and closing table know the task."""
    recipe = '[[clean.sources]]\nname = "mine"\npath = "mine.jsonl"\n[topics]\nlearning_rates = [1e-3]\n'
    encoder = "hidden_size = 8\nnum_hidden_layers = 1\nnum_attention_heads = 1\nintermediate_size = 8\n"
    pretrain = "[pretrain]\nphases = [{ length = 64, steps = 1 }]\n[pretrain.optimizer]\n[pretrain.encoder]\n" + encoder
    (tmp_path / "mine.toml").write_text(recipe + pretrain, encoding="utf-8")
    program = (
        "import sys; from tests.pipelines.toy_topics import ENTRY; from pipelines.tasks import TASKS\n"
        "TASKS['topics'] = ENTRY\n"
        "from pipelines.cli import run_command; sys.exit(run_command(sys.argv[1:]))"
    )

    def korbert(*arguments: str) -> str:
        command = [sys.executable, "-c", program, *arguments]
        path = os.pathsep.join(filter(None, [str(ROOT), *sys.path]))
        environment = {**os.environ, "PYTHONPATH": path, "KORBERT_DATA": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    assert "Fine-tune and score on Topics." in korbert("topics", "--help")
    assert "topics   absent" in korbert("status", "mine.toml")
    assert "topics builds on it" in korbert("topics", "mine.toml")
    assert "topics.max_length 600 is more than" in korbert("topics", "mine.toml", "--set", "topics.max_length=600")
    assert "topics.trian: no such key (did you mean train?)" in korbert("run", "mine.toml", "--set", "topics.trian=a")
