"""Bad input is said in one line; artifacts are protected from changes beneath; what is made anew and what stays."""

import json
import shutil
from pathlib import Path

import pytest

from korbert.system.scratch import claim
from tests.running import wait_until
from tests.whole.conftest import STAGES, Whole


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stage", "harm", "found"), [
    ("clean/documents/part-00000.parquet", "analyze", Path.unlink, "is missing"),
    ("shard/train/part-00000.arrow", "pretrain", _flip, "has other bytes than recorded, and pretrain reads it"),
])  # fmt: skip
def test_damage_beneath_a_stage_is_found_before_its_work(whole, tmp_path, name, stage, harm, found):
    made = whole.copy(tmp_path, STAGES[: STAGES.index(stage)])
    harm(made.folder / name)
    said = made.run(stage, code=2).err.splitlines()[-1]
    before = name.partition("/")[0]
    assert name.rpartition("/")[2] in said
    assert found in said
    assert f"--from {before}" in said
    assert not (made.folder / f"{stage}.partial").exists()


def test_half_an_analysis_is_not_resumed_with_another_kiwi(whole, tmp_path):
    """A run under another version leaves its plan and a part; here its plan is written as that run would have."""
    made = whole.copy(tmp_path, ["clean"])
    record = whole.record("analyze")
    partial = claim(made.folder / "analyze.partial")
    (partial / "work" / "analyze").mkdir(parents=True)
    (partial / "work" / "analyze" / "part-00000.json").write_text('{"key": "", "files": {}, "counts": {}}')
    plan = {key: record[key] for key in ("format", "stage", "stage_version", "settings", "inputs")}
    (partial / "plan.json").write_text(json.dumps(plan | {"versions": record["versions"] | {"kiwipiepy": "0.24.0"}}))
    said = made.run("analyze", code=2).err.splitlines()[-1]
    assert f'versions.kiwipiepy: "{record["versions"]["kiwipiepy"]}" here, "0.24.0" when it was begun' in said
    assert "--rebuild" in said
    made.run("analyze", "--rebuild")
    assert made.record("analyze")["digest"] == record["digest"]


def test_a_start_that_failed_does_not_refuse_the_corrected_command(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean", "analyze"])
    made.run("vocab", "--set", "vocab.size=50000", code=1)
    assert "the last run failed: " in made.run("status").out
    made.run("vocab")
    assert made.record("vocab")["digest"] == whole.record("vocab")["digest"]


def test_finished_work_of_other_settings_is_still_refused(whole, tmp_path):
    """Neither silently thrown away nor mixed: hours may lie in it."""
    made = whole.copy(tmp_path, ["clean", "analyze"])
    partial = claim(made.folder / "vocab.partial")
    shutil.copytree(whole.folder / "vocab", partial, dirs_exist_ok=True)
    (partial / "work" / "counts").mkdir(parents=True)
    (partial / "work" / "counts" / "part-00000.json").write_text("{}")
    (partial / "stage.json").rename(partial / "plan.json")
    assert "size: 1500 here, 1600 in the artifact" in made.run("vocab", "--set", "vocab.size=1500", code=2).err


def _lines(made, *command):
    return made.run(*command).out.splitlines()


def test_a_dry_run_and_status_say_the_same(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean", "vocab", "shard", "pretrain"])
    shown = _lines(made, "status")
    assert shown == _lines(made, "run", "--dry-run")
    assert [line.split(maxsplit=2)[2] for line in shown if line.startswith("analyze")] == ["would be made"]
    assert "         analyze is absent" in shown  # of vocab: it may come out the same
    assert any(line.startswith("vocab    stale") and "once analyze is fresh" in line for line in shown)
    refused = whole.run("run", "--set", "vocab.size=1500", code=2).err
    assert "size: 1500 here, 1600 in the artifact" in refused
    assert f"--from vocab --rebuild --root {whole.root} --set vocab.size=1500`" in refused
    changed = _lines(made, "status", "--set", "vocab.size=1500")
    assert changed == _lines(made, "run", "--dry-run", "--set", "vocab.size=1500")
    assert any(line.startswith("vocab    stale") and "would be refused" in line for line in changed)


# --- what is made anew, and what is left alone ---


def _times(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def _identity(whole, stage):
    return (whole.folder / stage / "stage.json").stat().st_ino


@pytest.mark.slow
def test_a_rebuild_that_was_cut_off_goes_on_where_it_was(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean", "analyze"])
    before = {stage: _identity(made, stage) for stage in ("clean", "analyze")}
    with made.start("run", "--to", "analyze", "--rebuild", "--workers", "1") as running:
        wait_until(lambda: any((made.folder / "analyze.partial").glob("work/*/part-*.json")), program=running)
        running.kill()
    again = _identity(made, "clean")
    assert again != before["clean"]
    recorded = {path.stem for path in (made.folder / "analyze.partial").glob("work/*/part-*.json")}
    written = _times(made.folder / "analyze.partial" / "morphemes")  # one may have no record yet, and is made again
    parts = {name: time for name, time in written.items() if Path(name).stem in recorded}
    assert parts

    said = made.run("run", "--to", "analyze", "--rebuild", "--workers", "1").err
    assert "clean: fresh, skipped" in said
    assert "analyze: resuming" in said
    assert _identity(made, "clean") == again
    assert _identity(made, "analyze") != before["analyze"]
    assert parts.items() <= _times(made.folder / "analyze" / "morphemes").items()
    assert made.record("analyze")["digest"] == whole.record("analyze")["digest"]
    assert json.loads((made.folder / "analyze" / "run.json").read_text(encoding="utf-8"))["resumed"]
    assert not list(made.folder.glob("*.partial"))


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
    said = made.run("run", "--set", "nsmc.test=absent.txt", code=2).err
    assert "nsmc.test: no file absent.txt" in said
    assert not (made.folder / "clean").exists()


def test_a_broken_record_is_stale_and_what_lies_beside_it_stays(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean"])
    (made.folder / "clean" / "stage.json").write_text("{", encoding="utf-8")
    (made.folder / "clean" / "run.json").write_text("{", encoding="utf-8")
    said = made.run("status").out
    assert "clean    stale" in said
    assert "stage.json: cannot be read" in said
    for way in ((), ("--rebuild",)):
        said = made.run("clean", *way, code=2).err.splitlines()[-1]
        assert "holds documents, which no readable record of korbert lists: move it away" in said
    assert (made.folder / "clean" / "documents" / "part-00000.parquet").is_file()
    (made.folder / "clean").rename(tmp_path / "broken")
    made.run("clean")
    assert made.record("clean")["digest"] == whole.record("clean")["digest"]


def test_a_page_that_is_missing_is_drawn_and_figures_of_stale_artifacts_are_not_shown(whole, tmp_path):
    made = whole.copy(tmp_path, ["clean", "analyze", "vocab", "shard"])
    shutil.rmtree(made.folder / "analyze")
    said = made.run("run", "--to", "clean").out
    assert "documents kept" in said
    assert "pieces per eojeol" not in said
    assert "vocab, shard" in said
    assert "pages: " not in said  # there are none
    (made.folder / "clean" / "report.html").unlink()
    assert "clean: fresh, skipped" in made.run("clean").err
    assert (made.folder / "clean" / "report.html").exists()
    assert (made.folder / "index.html").exists()


# --- bad input: one line that says where and what to do, the right exit code, and nothing lost ---


@pytest.fixture
def made(data, tmp_path):
    """A copy of the data and the recipe, to be harmed, and no artifacts."""
    shutil.copytree(data, tmp_path / "data")
    return Whole(tmp_path / "data" / "tiny.toml", tmp_path / "artifacts")


def _other_header(folder):
    path = folder / "ratings_train.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("id\tdocument\tlabel", "id,text,label"), encoding="utf-8")


BAD = {
    "missing file": ("clean", lambda folder: (folder / "wiki.jsonl").unlink(), (),
                     ("tiny.toml: clean.wiki: no file wiki.jsonl in ", "--data")),
    "too little text": ("vocab", lambda folder: None, ("--set", "vocab.size=50000"),
                        ("vocab.size 50000: too little text", "set vocab.size to ", "or bring more text")),
    "nothing held out": ("vocab", lambda folder: None, ("--set", "heldout_share=0.000001"),
                         ("documents is held out by heldout_share 1e-06",)),
    "NSMC header": ("nsmc", _other_header, (),
                    ("data/ratings_train.txt: no column 'document' for text among id,text,label",)),
    "not KorQuAD": ("korquad", lambda folder: (folder / "train.json").write_text('{"rows": []}'), (), ("train.json",)),
}  # fmt: skip


@pytest.mark.parametrize(("stage", "harm", "options", "said"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_said_in_one_line(whole, made, stage, harm, options, said):
    for name in STAGES[: STAGES.index(stage)]:
        shutil.copytree(whole.folder / name, made.folder / name)
    harm(made.recipe.parent)
    shown = made.run(stage, "--workers", "1", *options, code=2 if stage == "clean" else 1).err
    last = shown.splitlines()[-1]
    assert last.startswith("korbert: ")
    assert [part for part in said if part not in last] == []
    assert "Traceback" not in shown
    assert not (made.folder / stage).exists()


def test_bad_rows_are_told_by_their_reason_and_the_run_goes_on(made):
    """Which they are, and that the others stay: tests/corpus/cleaning/test_clean.py."""
    with (made.recipe.parent / "wiki.jsonl").open("ab") as file:
        file.write(b'{"id": "cut", "text": "\n' * 99)
    said = made.run("clean", "--workers", "1", "--set", "clean.part_bytes=1000000").err  # one part: quicker
    counts = made.record("clean")["counts"]
    assert counts["dropped.bad_json"] == 99
    assert f"dropped {counts['dropped']} (99 bad JSON" in said
