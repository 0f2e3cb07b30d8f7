"""The whole pipeline by its command: fresh, stale, drifted, damaged, misused; and what its models are good for."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from korbert.modeling.files.storage import load_model
from tests.korbert.huggingface.exported import differences
from tests.running import left_of, run_here, wait_until
from tests.whole.conftest import STAGES, Whole

_IMPORTED = """
import sys
from korbert.pipelines.cli import run_command
code = run_command(sys.argv[1:])
print("heavy:", *sorted({"torch", "kiwipiepy", "duckdb"} & sys.modules.keys()))
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["status", "run"])
def test_what_has_nothing_to_do_loads_and_makes_nothing(whole, name):
    command = [sys.executable, "-c", _IMPORTED, name, str(whole.recipe), "--root", str(whole.root)]
    before = {stage: (whole.folder / stage / "stage.json").stat().st_ino for stage in STAGES}
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("fresh") == 7
    assert done.stdout.splitlines()[-1] == "heavy:"
    assert before == {stage: (whole.folder / stage / "stage.json").stat().st_ino for stage in STAGES}


@pytest.mark.slow
def test_two_workers_make_the_same(whole, tmp_path):
    made = Whole(whole.recipe, tmp_path)
    made.run_outside("run", "--workers", "2", "--to", "shard")
    for stage in STAGES[:4]:
        assert made.record(stage)["digest"] == whole.record(stage)["digest"], stage


def test_two_runs_on_one_artifact(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean"])
    with made.start("analyze") as running:
        try:
            wait_until((made.folder / "analyze.partial" / "plan.json").exists, program=running)
            running.send_signal(signal.SIGSTOP)  # or it might be done before the others have looked
            assert f"is being made by process {running.pid}" in made.run("status").out
            said = f"analyze: is being written by process {running.pid}: wait for it, or stop it, and run this again"
            for command in (("analyze",), ("run", "--to", "analyze"), ("analyze", "--rebuild")):
                assert said in made.run(*command, code=2).err.splitlines()[-1]
        finally:
            running.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "ready", "told", "number", "how"), [
    ("analyze", "work/*/part-*.json", "parts done", signal.SIGINT, "interrupted"),
    ("pretrain", "checkpoints/step-????????", "is saved", signal.SIGTERM, "ended by SIGTERM"),
])  # fmt: skip
def test_both_signals_say_that_it_can_go_on(whole, tmp_path, stage, ready, told, number, how):
    """A terminal sends Ctrl-C to all processes of the group, the workers too. Those of rows change no digest."""
    made = whole.copy(tmp_path, STAGES[: STAGES.index(stage)])
    with made.start("run", "--to", stage, "--row-workers", "2") as running:
        wait_until(lambda: any((made.folder / f"{stage}.partial").glob(ready)), program=running)
        os.killpg(running.pid, number)
    said = (made.root / "stderr.txt").read_text(encoding="utf-8")
    assert running.returncode == 128 + number
    lost = "finished work is kept; the same command resumes"
    if stage == "pretrain":
        step = int(max((made.folder / "pretrain.partial" / "checkpoints").glob("step-????????")).name[-8:])
        lost = f"pretrain: step {step} is saved; the same command resumes there"
    assert said.splitlines()[-1] == f"korbert: {how}: {lost}"
    assert "Traceback" not in said
    assert not left_of(running.pid, 30)
    status = made.run("status").out
    assert "a run was interrupted" in status
    assert told in status
    assert f"{stage}: resuming" in made.run("run", "--to", stage).err
    assert made.record(stage)["digest"] == whole.record(stage)["digest"]
    if stage == "pretrain":
        timing = (made.folder / "pretrain" / "timing.jsonl").read_text(encoding="utf-8").splitlines()
        assert [line["step"] for line in map(json.loads, timing) if line["kind"] == "start"] == [0, step]


@pytest.mark.slow
def test_a_full_disk_is_said_and_survived(whole, tmp_path):
    """A limit on file sizes stands in for the disk: writing fails in the same place, by an error of the system."""
    made = whole.copy(tmp_path, ["clean", "analyze", "vocab", "shard"])

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(made.command("pretrain"), capture_output=True, text=True, preexec_fn=small_files)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"korbert: {made.folder / 'pretrain.partial'}/")
    assert "make room, then run the same command" in said
    made.run("pretrain")
    assert made.record("pretrain")["digest"] == whole.record("pretrain")["digest"]


def test_report_draws_all_pages_anew(whole, tmp_path):
    made = whole.copy(tmp_path, STAGES)
    pages = [*(made.folder / stage / "report.html" for stage in STAGES), made.folder / "index.html"]
    for page in pages[:-1]:
        page.write_text('<meta name="generator" content="korbert">old', encoding="utf-8")
    assert made.run("report").out.splitlines() == [str(page) for page in pages]
    for page in pages:
        assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")
    index = pages[-1].read_text(encoding="utf-8")
    assert [stage for stage in STAGES if f'href="{stage}/report.html"' not in index] == []
    assert made.run("status", "--verify").out.count("fresh") == 7


def test_another_setting_of_a_task_analyses_nothing(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean", "analyze", "vocab", "shard", "pretrain", "encoded"])
    before = {path: path.stat().st_mtime_ns for path in (made.folder / "encoded").glob("texts-*")}
    assert len(before) == 2  # of both tasks
    made.run("run", "--from", "nsmc", "--set", "nsmc.learning_rates=[1e-3]", "--set", "korquad.epochs=1")
    assert {path: path.stat().st_mtime_ns for path in (made.folder / "encoded").glob("texts-*")} == before


def _printed(*arguments):
    done = run_here([*map(str, arguments)], Path.cwd(), seconds=300)
    assert done.code == 0, done.out + done.err
    return done.out


def test_submit_and_score_agree_with_the_stage(whole, data, tmp_path):
    output = tmp_path / "predictions.json"
    _printed("submit", whole.folder / "korquad" / "model", data / "valid.json", output)
    assert json.loads(output.read_text()) == json.loads((whole.folder / "korquad" / "predictions.json").read_text())
    score = json.loads(_printed("score", data / "valid.json", output))
    recorded = json.loads((whole.folder / "korquad" / "scores.json").read_text())["rows"][0]["scores"]
    assert score == {key: pytest.approx(100 * recorded[key]) for key in ("exact_match", "f1")}


@pytest.mark.parametrize("stage", ["pretrain", pytest.param("korquad", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("remote_code_aside")
def test_export_has_the_same_logits(whole, tmp_path, stage):
    _printed("export", whole.folder / stage / "model", tmp_path / stage)
    assert differences(*load_model(whole.folder / stage / "model"), tmp_path / stage)
