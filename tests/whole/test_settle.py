"""Killed between the record and the last rename: the work is done, and the next run only puts it in place."""

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from korbert.pipelines.artifacts import store
from korbert.system.scratch import MARK
from tests.whole.conftest import Whole


@pytest.fixture
def made(whole, tmp_path, monkeypatch):
    """A root where the stage's own work is to copy what `clean` made: all around it is at work as ever."""

    def copy(settings, inputs, output, runtime):
        for name in ("documents", "dropped", "frequent"):
            shutil.copytree(whole.folder / "clean" / name, output / name)
        (output / "work").mkdir()
        return whole.record("clean")["counts"]

    monkeypatch.setattr("korbert.pipelines.stages.clean.run", copy)
    return Whole(whole.recipe, tmp_path)


def _cut_off(made, step, *options):
    """A run that ends before that step: "publish", or the rename to the folder of that name."""
    rename = Path.rename

    def guarded(path, target):
        if target.name == step:
            raise KeyboardInterrupt
        return rename(path, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rename", guarded)
        if step == "publish":
            patch.setattr(store, "publish", Mock(side_effect=KeyboardInterrupt))
        made.run("clean", *options, code=130)


def _older(whole, made):
    """An artifact of other settings where the new one will lie."""
    shutil.copytree(whole.folder / "clean", made.folder / "clean")
    record = whole.record("clean")
    record["settings"]["part_bytes"] += 1
    record["digest"] = store.digest_of(record)
    (made.folder / "clean" / "stage.json").write_text(json.dumps(record), encoding="utf-8")


def _written(folder):
    """Name -> inode and time of what the run had made, record and all."""
    stats = {path.relative_to(folder).as_posix(): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items() if name not in _OF_THE_MOMENT}


_OF_THE_MOMENT = {"plan.json", "report.html", "rebuild", MARK}
_OLD = ".korbert-clean.old"
_BEGUN = ("clean.partial/plan.json", "clean.partial/work")


@pytest.mark.parametrize(("step", "options", "there"), [
    ("publish", (), {"clean.partial", *_BEGUN}),
    ("clean", (), {"clean.partial"}),
    ("publish", ("--rebuild",), {"clean", "clean.partial", *_BEGUN}),  # an older one is in place
    (_OLD, ("--rebuild",), {"clean", "clean.partial"}),
    ("clean", ("--rebuild",), {_OLD, "clean.partial"}),
])  # fmt: skip
def test_a_whole_partial_folder_is_put_in_place(whole, made, monkeypatch, step, options, there):
    if options:
        _older(whole, made)
    _cut_off(made, step, *options)
    places = ("clean", _OLD, "clean.partial", *_BEGUN)
    assert {name for name in places if (made.folder / name).exists()} == there
    before = _written(made.folder / "clean.partial")
    assert {"stage.json", "run.json", "documents/part-00000.parquet"} <= before.keys()

    again = AssertionError("the stage was run again")
    monkeypatch.setattr("korbert.pipelines.stages.clean.run", Mock(side_effect=again))
    made.run("clean", *options)
    assert made.record("clean")["digest"] == whole.record("clean")["digest"]
    assert _written(made.folder / "clean") == before
    assert {name for name in places if (made.folder / name).exists()} == {"clean"}
    assert not (made.folder / "clean" / "work").exists()
    assert "fresh" in made.run("clean").err
