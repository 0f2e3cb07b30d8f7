"""The nsmc stage on a few reviews: what it leaves, what it refuses, and that a killed run ends in the same bytes."""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from korbert.errors import CorpusError, SettingsError
from korbert.tasks import Classifier
from korbert.tasks.nsmc.settings import NsmcSettings
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.tasks import NSMC

SETTINGS: dict[str, Any] = {
    "validation_share": 0.25,
    "max_length": 24,
    "batch_size": 8,
    "epochs": 2,
    "learning_rates": [5e-3, 1e-3],
    "baseline_c": [1.0, 4.0],
    "precision": "fp32",
    "threads": 1,
    "log_every": 1,
    "checkpoint_every": 2,
}
_GOOD = ("정말 재미있다", "배우의 연기가 좋았다", "최고의 영화", "감동적인 이야기", "또 보고 싶다")
_BAD = ("정말 지루하다", "시간이 아깝다", "최악의 영화", "억지스러운 이야기", "다시는 보고 싶지 않다")
_ENDS = ("", "!", " ㅋㅋㅋ", " 진짜로", " 10점", ' "', "...", " 친구와 함께 봤다")


def _reviews(count: int, seed: int) -> list[tuple[str, int]]:
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        label = int(generator.integers(2))
        first, second = generator.choice(_GOOD if label else _BAD, 2)
        found.append((f"{first} {second}{generator.choice(_ENDS)}", label))
    return found


def _write(path: Path, reviews: list[tuple[str, int]]) -> None:
    rows = (f"{100 + number}\t{text}\t{label}\n" for number, (text, label) in enumerate(reviews))
    path.write_text("id\tdocument\tlabel\n" + "".join(rows), encoding="utf-8")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, task_artifacts: dict[str, Path]) -> Inputs:
    """Files of 150 and 60 reviews beside the artifacts."""
    folder = tmp_path_factory.mktemp("inputs")
    train, test = _reviews(150, 1), _reviews(57, 2)
    _write(folder / "train.txt", [*train, ("", 0), ("NA", 1)])
    _write(folder / "test.txt", [(train[0][0].replace(" ", "  "), train[0][1]), ("", 1), ("말뭉치의 한 줄", 0), *test])
    return Inputs(task_artifacts, {role: (folder / f"{role}.txt",) for role in ("train", "test")})


def _run(inputs: Inputs, output: Path, **changes: Any) -> Counts:
    output.mkdir(exist_ok=True)
    runtime = Runtime(root=output, data=output, workers=1, device="cpu")
    return NSMC.run(NsmcSettings.model_validate(SETTINGS | changes), inputs, output, runtime)


def _digests(output: Path) -> dict[str, str]:
    """SHA-256 of every file of the artifact, without the scratch folders."""
    files = (path for path in output.rglob("*") if path.is_file())
    named = {path.relative_to(output).as_posix(): path for path in files}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in sorted(named.items())
        if not name.startswith(("work/", "checkpoints/"))
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, inputs: Inputs) -> tuple[Path, Counts]:
    """A run that nobody disturbed."""
    output = tmp_path_factory.mktemp("nsmc")
    return output, _run(inputs, output)


def test_the_table_has_three_rows_chosen_by_validation(finished: tuple[Path, Counts]) -> None:
    output, counts = finished
    found = json.loads((output / "scores.json").read_text("utf-8"))
    assert [row["name"] for row in found["rows"]] == ["pretrained", "scratch", "tfidf"]
    assert found["counts"] == {name: counts[name] for name in ("train", "validation", "test", "unseen")}
    assert counts["train"] + counts["validation"] == 152
    assert counts["test"] == 60
    for row in found["rows"]:
        best = max(trial["validation_accuracy"] for trial in row["trials"])
        assert row["validation_accuracy"] == best
        assert row["epoch"] in ((None,) if row["name"] == "tfidf" else (1, 2))
        for part, count in (("all", 60), ("unseen", counts["unseen"])):
            accuracy = row["test"][part]["accuracy"]
            assert row["test"][part]["count"] == count
            assert row["test"][part]["standard_error"] == pytest.approx((accuracy * (1 - accuracy) / count) ** 0.5)
    assert {trial["learning_rate"] for trial in found["rows"][0]["trials"]} == {5e-3, 1e-3}
    assert {trial["c"] for trial in found["rows"][2]["trials"]} == {1.0, 4.0}
    assert found["rows"][0]["test"]["all"]["accuracy"] > 0.8  # the words tell it
    assert counts["tfidf_accuracy"] == found["rows"][2]["test"]["all"]["accuracy"]


def test_predictions_are_those_of_the_main_row(finished: tuple[Path, Counts], inputs: Inputs) -> None:
    output, counts = finished
    table = pd.read_parquet(output / "predictions.parquet")
    assert list(table.columns) == ["id", "text", "label", "prediction", "probability", "unseen"]
    assert table["id"][0] == "100"
    assert ((table["probability"] > 0.5) == (table["prediction"] == 1)).all()
    found = json.loads((output / "scores.json").read_text("utf-8"))
    right = table["label"] == table["prediction"]
    assert right.mean() == pytest.approx(found["rows"][0]["test"]["all"]["accuracy"])
    assert right[table["unseen"]].mean() == pytest.approx(found["rows"][0]["test"]["unseen"]["accuracy"])
    counted = pd.crosstab(table["label"], table["prediction"]).reindex(index=[0, 1], columns=[0, 1], fill_value=0)
    assert counted.to_numpy().tolist() == found["confusion"]
    train = pd.read_csv(inputs.files["train"][0], sep="\t", quoting=3, keep_default_na=False)
    seen = {" ".join(text.split()) for text in train["document"]} | {"말뭉치의 한 줄"}
    assert table["unseen"].tolist() == [" ".join(text.split()) not in seen for text in table["text"]]
    assert table["unseen"][:3].tolist() == [False, False, False]
    assert counts["unseen"] == table["unseen"].sum() > 0


def test_the_model_is_the_main_rows(finished: tuple[Path, Counts]) -> None:
    output, _ = finished
    table = pd.read_parquet(output / "predictions.parquet")
    classifier = Classifier.load(output / "model", "cpu")
    assert classifier.labels == ("부정", "긍정")
    assert classifier.max_length == 24
    said = [prediction["probabilities"]["긍정"] for prediction in classifier.predict(table["text"].tolist())]
    assert said == pytest.approx(table["probability"].tolist(), abs=1e-6)


def test_every_training_leaves_its_curve(finished: tuple[Path, Counts]) -> None:
    output, _ = finished
    names = {path.stem for path in (output / "metrics").iterdir()}
    assert names == {f"{row}-rate-{rate}-seed-0" for row in ("pretrained", "scratch") for rate in ("0.005", "0.001")}
    text = (output / "metrics" / "scratch-rate-0.001-seed-0.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["epoch"] for line in lines if line["kind"] == "heldout"] == [1, 2]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"init": "scratch", "seeds": [4]}, ["scratch", "tfidf"]),
        ({"scratch": False, "seeds": [1, 2], "pooling": "first"}, ["pretrained", "pretrained", "tfidf"]),
    ],
)
def test_rows_follow_the_settings(tmp_path: Path, inputs: Inputs, changes: dict[str, Any], names: list[str]) -> None:
    counts = _run(inputs, tmp_path, **changes, epochs=1, learning_rates=[1e-3], note="표본이다.")
    found = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    assert [row["name"] for row in found["rows"]] == names
    assert [row["seed"] for row in found["rows"][:-1]] == changes["seeds"]
    assert found["note"].endswith(" 표본이다.")
    assert f"{names[0]}_accuracy" in counts


_KILLABLE = """
import json, sys
from pathlib import Path
from korbert.tasks.nsmc.settings import NsmcSettings
from pipelines.runtime import Runtime
from pipelines.stages import Inputs
from pipelines.tasks import NSMC
if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    files = {role: tuple(map(Path, paths)) for role, paths in given["files"].items()}
    inputs = Inputs({name: Path(path) for name, path in given["artifacts"].items()}, files)
    output = Path(given["output"])
    NSMC.run(NsmcSettings.model_validate(given["settings"]), inputs, output, Runtime(output, output, 1, device="cpu"))
"""


def _start(inputs: Inputs, output: Path) -> subprocess.Popen[bytes]:
    given = {
        "artifacts": {name: str(path) for name, path in inputs.artifacts.items()},
        "files": {role: [str(path) for path in paths] for role, paths in inputs.files.items()},
        "settings": SETTINGS,
        "output": str(output),
    }
    return subprocess.Popen([sys.executable, "-c", _KILLABLE, json.dumps(given)])


def _kill_when(reached: Callable[[], bool], inputs: Inputs, output: Path) -> None:
    process = _start(inputs, output)
    deadline = time.monotonic() + 120
    while not reached() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _starts(output: Path, training: str) -> list[int]:
    lines = (output / "work" / "rows" / training / "timing.jsonl").read_text("utf-8").splitlines()
    return [line["step"] for line in map(json.loads, lines) if line["kind"] == "start"]


def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(
    tmp_path: Path, inputs: Inputs, finished: tuple[Path, Counts]
) -> None:
    curve = tmp_path / "metrics" / "pretrained-rate-0.001-seed-0.jsonl"
    _kill_when(lambda: _lines(curve) >= 20, inputs, tmp_path)  # in the second epoch of the second training
    kept = [*(tmp_path / "work").glob("texts-*"), tmp_path / "work/rows/pretrained-rate-0.005-seed-0/result.json"]
    before = {path: path.stat().st_mtime_ns for path in kept}
    assert len(before) == 3
    process = _start(inputs, tmp_path)
    assert process.wait() == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == before
    assert _starts(tmp_path, "pretrained-rate-0.005-seed-0") == [0]
    first, second = _starts(tmp_path, "pretrained-rate-0.001-seed-0")
    assert first == 0
    assert second > 0
    assert _digests(tmp_path) == _digests(finished[0])


@pytest.mark.parametrize("change", ["flipped", "cut"])
@pytest.mark.parametrize("name", ["best.safetensors", "result.json", "predictions.json", "facts.json"])
def test_what_is_damaged_is_made_anew(
    tmp_path: Path,
    inputs: Inputs,
    finished: tuple[Path, Counts],
    name: str,
    change: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    output = Path(shutil.copytree(finished[0], tmp_path / "again"))
    damaged = list((output / "work" / "rows").glob(f"*/{name}"))
    assert damaged
    for path in damaged:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data if change == "flipped" else data[:-20])
    _run(inputs, output)
    assert _digests(output) == _digests(finished[0])
    assert all(f"{path}: damaged" in caplog.text for path in damaged)


@pytest.mark.slow
def test_kills_at_many_moments_change_nothing(tmp_path: Path, inputs: Inputs, finished: tuple[Path, Counts]) -> None:
    work, rows = tmp_path / "work", tmp_path / "work" / "rows"
    first, second = (rows / f"pretrained-rate-{rate}-seed-0" for rate in ("0.005", "0.001"))
    moments: list[Callable[[], bool]] = [
        lambda: any(work.glob("texts-*")),
        lambda: _lines(tmp_path / "metrics" / f"{first.name}.jsonl") >= 1,
        lambda: (first / "best.safetensors").exists(),
        lambda: _lines(tmp_path / "metrics" / f"{first.name}.jsonl") >= 18,
        lambda: (first / "result.json").exists(),
        lambda: (second / "result.json").exists(),
        lambda: any(rows.glob("*/predictions.json")),
        lambda: (rows / "tfidf" / "facts.json").exists(),
    ]
    for reached in moments:
        _kill_when(reached, inputs, tmp_path)
    assert _start(inputs, tmp_path).wait() == 0
    assert _digests(tmp_path) == _digests(finished[0])


def test_more_pieces_than_the_encoder_has_positions_are_refused(tmp_path: Path, inputs: Inputs) -> None:
    with pytest.raises(SettingsError, match=r"nsmc\.max_length 33 is more than the 32 positions of .*pretrain/model"):
        _run(inputs, tmp_path, max_length=33)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"validation_share": 1e-9},
            r"train\.txt: none of 40 reviews falls into the validation part: give more, or raise",
        ),
        ({}, r"train\.txt: no training reviews have the label 부정: add reviews of each label"),
    ],
)
def test_too_few_reviews_are_refused(tmp_path: Path, inputs: Inputs, changes: dict[str, Any], message: str) -> None:
    _write(tmp_path / "train.txt", [("좋다", 1)] * 40)
    few = Inputs(inputs.artifacts, {**inputs.files, "train": (tmp_path / "train.txt",)})
    with pytest.raises(CorpusError, match=message):
        _run(few, tmp_path / "output", **changes)


def test_a_wrong_header_stops_the_stage_before_any_work(tmp_path: Path, inputs: Inputs) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("id,document,label\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"wrong\.txt, line 1: the header is"):
        _run(Inputs(inputs.artifacts, {**inputs.files, "test": (wrong,)}), tmp_path / "output")
    assert not any((tmp_path / "output").iterdir())
