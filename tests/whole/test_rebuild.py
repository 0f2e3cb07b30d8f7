"""What is made anew, what is left alone, and what is still readable when something of it is gone."""

import json
import shutil
import time

from tests.whole.conftest import Whole


def _identity(whole, stage):
    return (whole.folder / stage / "stage.json").stat().st_ino


def test_a_rebuild_that_was_cut_off_goes_on_where_it_was(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean", "analyze"])
    before = {stage: _identity(made, stage) for stage in ("clean", "analyze")}
    with made.start("run", "--to", "analyze", "--rebuild", "--workers", "1") as running:
        while not list((made.folder / "analyze.partial").glob("work/*/part-*.json")):
            assert running.poll() is None
            time.sleep(0.01)
        running.kill()
    again = _identity(made, "clean")
    assert again != before["clean"]
    parts = {path: path.stat().st_mtime_ns for path in (made.folder / "analyze.partial").glob("morphemes/*")}
    assert parts

    said = made.run("run", "--to", "analyze", "--rebuild", "--workers", "1").err
    assert "clean: fresh, skipped" in said
    assert "analyze: resuming" in said
    assert _identity(made, "clean") == again
    assert _identity(made, "analyze") != before["analyze"]
    assert {made.folder / "analyze" / path.relative_to(made.folder / "analyze.partial"): when
            for path, when in parts.items()}.items() <= {
        path: path.stat().st_mtime_ns for path in (made.folder / "analyze" / "morphemes").iterdir()
    }.items()  # fmt: skip
    assert made.record("analyze")["digest"] == whole.record("analyze")["digest"]
    assert json.loads((made.folder / "analyze" / "run.json").read_text(encoding="utf-8"))["resumed"]
    assert not list(made.folder.glob("*.rebuild"))


def test_artifacts_outlive_the_files_they_came_from(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean"])
    (tmp_path / "nothing").mkdir()
    data = ("--data", str(tmp_path / "nothing"))
    said = made.run("status", *data).out
    assert "clean    fresh" in said
    assert "not compared with its source files" in said
    made.run("run", "--from", "analyze", "--to", "analyze", *data)
    assert made.record("analyze")["digest"] == whole.record("analyze")["digest"]


def test_missing_task_files_are_said_before_any_work(whole, tmp_path):
    made = Whole(whole.recipe, tmp_path)
    said = made.run("run", "--set", "nsmc.test=absent.txt", code=1).err
    assert "nsmc.test: no file absent.txt" in said
    assert not (made.folder / "clean").exists()


def test_nothing_held_out_is_said_early(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean", "analyze"])
    said = made.run("vocab", "--set", "heldout_share=0.000001", code=1).err
    assert "documents is held out by heldout_share 1e-06" in said


def test_broken_records_are_stale_and_can_be_rebuilt(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean"])
    (made.folder / "clean" / "stage.json").write_text("{", encoding="utf-8")
    (made.folder / "clean" / "run.json").write_text("{", encoding="utf-8")
    said = made.run("status").out
    assert "clean    stale" in said
    assert "stage.json: cannot be read" in said
    made.run("clean", "--rebuild")
    assert made.record("clean")["digest"] == whole.record("clean")["digest"]


def test_a_page_that_is_missing_is_drawn_by_the_next_run(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean"])
    (made.folder / "clean" / "report.html").unlink()
    assert "clean: fresh, skipped" in made.run("clean").err
    assert (made.folder / "clean" / "report.html").exists()
    assert (made.folder / "index.html").exists()


def test_figures_of_stale_artifacts_are_not_shown(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean", "analyze", "vocab", "shard"])
    shutil.rmtree(made.folder / "analyze")
    said = made.run("run", "--to", "clean").out
    assert "documents kept" in said
    assert "pieces per eojeol" not in said
    assert "vocab, shard" in said
