"""The whole pipeline by its command: fresh, stale, drifted, damaged, misused."""

import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.whole.conftest import Whole

STAGES = ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad")


def test_a_second_run_does_nothing(whole: Whole) -> None:
    before = {stage: (whole.folder / stage / "stage.json").stat().st_ino for stage in STAGES}
    said = whole.run("run").stderr
    assert [f"{stage}: fresh, skipped" in said for stage in STAGES] == [True] * 7
    assert before == {stage: (whole.folder / stage / "stage.json").stat().st_ino for stage in STAGES}


def test_one_worker_makes_the_same(whole: Whole, tmp_path: Path) -> None:
    made = Whole(whole.recipe, tmp_path)
    made.run("run", "--workers", "1", "--to", "shard")
    for stage in STAGES[:4]:
        assert made.record(stage)["digest"] == whole.record(stage)["digest"], stage


def test_drift_is_refused_field_by_field(whole: Whole) -> None:
    said = whole.run("run", "--set", "vocab.size=1500", code=2).stderr
    assert "size: 1500 here, 1600 in the artifact" in said
    assert f"--from vocab --rebuild --root {whole.root} --set vocab.size=1500`" in said
    assert "Traceback" not in said


def test_status_says_what_is_stale_and_why(whole: Whole) -> None:
    assert whole.run("status", "--verify").stdout.count("fresh") == 7
    said = whole.run("status", "--set", "vocab.size=1500").stdout
    assert "1500 here" in said
    assert said.count("stale") >= 2


def test_a_stage_alone_refuses_without_its_inputs(whole: Whole, tmp_path: Path) -> None:
    made = Whole(whole.recipe, tmp_path)
    said = made.run("vocab", code=2).stderr
    assert "is absent" in said
    assert "korbert run" in said


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_a_damaged_artifact_is_refused(whole: Whole, tmp_path: Path, harm: str) -> None:
    made = whole.copy(tmp_path, ["clean"])
    part = next((made.folder / "clean" / "documents").iterdir())
    if harm == "missing":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes() + b"x")
    said = made.run("analyze", code=2).stderr
    assert part.name in said
    assert "--rebuild" in said or "korbert run" in said


def test_rebuild_makes_it_anew(whole: Whole, tmp_path: Path) -> None:
    made = whole.copy(tmp_path, ["clean"])
    before = (made.folder / "clean" / "stage.json").stat().st_ino
    made.run("clean", "--rebuild")
    assert (made.folder / "clean" / "stage.json").stat().st_ino != before
    assert made.record("clean")["digest"] == whole.record("clean")["digest"]


def test_dry_run_tells_and_does_nothing(whole: Whole, tmp_path: Path) -> None:
    made = Whole(whole.recipe, tmp_path)
    assert made.run("run", "--dry-run").stdout.count("would be made") == 7
    assert not made.folder.exists()


def test_ctrl_c_says_that_it_can_go_on(whole: Whole, tmp_path: Path) -> None:
    made = Whole(whole.recipe, tmp_path)
    with made.start("run", "--to", "analyze") as running:
        while not (made.folder / "analyze.partial").exists():
            time.sleep(0.01)
        assert f"is being made by process {running.pid}" in made.run("status").stdout
        while not any((made.folder / "analyze.partial").glob("work/*/part-*.json")):
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
    said = (made.root / "stderr.txt").read_text(encoding="utf-8")
    assert running.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    told = made.run("status").stdout
    assert "a run was cut off" in told
    assert "parts are done" in told
    made.run("run", "--to", "analyze")
    assert made.record("analyze")["digest"] == whole.record("analyze")["digest"]


def test_a_missing_source_file(whole: Whole, tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.toml"
    shutil.copy(whole.recipe, recipe)
    said = Whole(recipe, tmp_path / "artifacts").run("run", code=1).stderr
    assert "clean.wiki: no file wiki.jsonl" in said
    assert "--data" in said


def test_a_full_disk_is_said_and_survived(whole: Whole, tmp_path: Path) -> None:
    """A limit on file sizes stands in for the disk: writing fails in the same place, by an error of the system."""
    import resource
    import subprocess

    made = whole.copy(tmp_path, ["clean", "analyze", "vocab", "shard"])

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(made.command("pretrain"), capture_output=True, text=True, preexec_fn=small_files)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    made.run("pretrain")
    assert made.record("pretrain")["digest"] == whole.record("pretrain")["digest"]


def test_predictions_answer_every_question(whole: Whole, data: Path) -> None:
    content = json.loads((data / "valid.json").read_text(encoding="utf-8"))
    ids = {qa["id"] for article in content["data"] for paragraph in article["paragraphs"] for qa in paragraph["qas"]}
    answers = json.loads((whole.folder / "korquad" / "predictions.json").read_text(encoding="utf-8"))
    assert answers.keys() == ids
