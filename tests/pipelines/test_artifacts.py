"""An artifact is whole or absent, and knows what made it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from korbert.errors import ArtifactError
from korbert.pipelines.artifacts import store
from korbert.pipelines.artifacts.store import Plan
from korbert.pipelines.runs.pipeline import progress
from korbert.system.durable import sha256_of
from korbert.system.scratch import remove_listed


def _plan(version="2.0.0", **settings):
    return Plan("vocab", 1, dict(settings), {"artifacts": {"analyze": "abc"}, "files": {}}, {"duckdb": version})


def _make(folder, plan, text="하늘\n"):
    partial = folder / "vocab.partial"
    store.begin(partial, plan)
    (partial / "tokenizer").mkdir()
    (partial / "work").mkdir()
    (partial / "work" / "scratch").write_text("x")
    (partial / "tokenizer" / "pieces.txt").write_text(text)
    return store.finish(partial, folder / "vocab", plan, {"counts": {}, "numerics": {}}, {"seconds": 1})


def test_finish_renames_records_and_leaves_no_scratch(tmp_path):
    _make(tmp_path, _plan(size=8))  # an older artifact gives way
    record = _make(tmp_path, _plan(size=9), text="바다\n")
    assert [path.name for path in tmp_path.iterdir()] == ["vocab"]
    assert sorted(path.name for path in (tmp_path / "vocab").iterdir()) == ["run.json", "stage.json", "tokenizer"]
    assert (tmp_path / "vocab" / "tokenizer" / "pieces.txt").read_text() == "바다\n"
    assert list(record["files"]) == ["tokenizer/pieces.txt"]
    assert store.read_json(tmp_path / "vocab" / "stage.json") == record
    assert store.damage(tmp_path / "vocab", record, hashes=True) is None
    same, *others = (_make(tmp_path / name, _plan(size=size), text) for name, size, text in (
        ("a", 9, "바다\n"), ("b", 8, "바다\n"), ("c", 9, "하늘\n")
    ))  # fmt: skip
    assert same["digest"] == record["digest"] not in [other["digest"] for other in others]


_LONG = "나" * 80


@pytest.mark.parametrize(("here", "there", "expected"), [
    ([{"steps": 60, "length": 8}], [{"steps": 300, "length": 8}], "phases.0.steps: 60 here, 300 in the artifact"),
    ([{"steps": 60}], [{"steps": 60}, {"steps": 9}], 'phases.1: nothing here, {"steps": 9} in the artifact'),
    ([0, 1], [0], "phases: [0, 1] here, [0] in the artifact"),
    (f"{_LONG}1", f"{_LONG}2", f'phases: ...{_LONG[:20]}1" here, ...{_LONG[:20]}2" in the artifact'),
    (["가" * 70], [], f'phases: ["{"가" * 55}... here, [] in the artifact'),
])  # fmt: skip
def test_a_difference_is_shown_where_it_is(tmp_path, here, there, expected):
    record = _plan(size=16_000, phases=there).as_json() | {"files": {}}
    assert store.differences(_plan(size=16_000, phases=there), record) == []
    assert store.differences(_plan(size=16_000, phases=here), record) == [expected]
    newer = _plan("2.1.0", size=16_000, phases=there)
    assert store.differences(newer, record) == []  # a finished artifact of another version stays
    store.begin(tmp_path / "vocab.partial", _plan(size=16_000, phases=there))
    begun = store.read_plan(tmp_path / "vocab.partial")
    assert store.differences(newer, begun) == ['versions.duckdb: "2.1.0" here, "2.0.0" when it was begun']
    several = store.differences(_plan(size=9, phases=here, mark="none"), record)
    assert several == ['mark: "none" here, nothing in the artifact', expected, "size: 9 here, 16000 in the artifact"]


@pytest.mark.parametrize(("harm", "said"), [
    (lambda path: path.unlink(), "is missing"),
    (lambda path: path.write_text("하늘이\n"), "bytes"),
    (lambda path: path.write_text("바다\n"), "other bytes than recorded"),
    (lambda path: path.with_name("more.txt").write_text(""), "is not in the record"),
])  # fmt: skip
def test_damage_is_found(tmp_path, harm, said):
    record = _make(tmp_path, _plan())
    harm(tmp_path / "vocab" / "tokenizer" / "pieces.txt")
    assert said in (store.damage(tmp_path / "vocab", record, hashes=True) or "")


def test_work_that_is_done_is_counted_and_kept(tmp_path):
    partial = tmp_path / "a.partial"

    def work():
        return progress(partial), store.holds_work(partial)

    store.begin(partial, _plan())
    assert work() == (None, False)
    step = partial / "work" / "read"
    step.mkdir(parents=True)
    (step / "parts").write_text("")  # as it is for a moment
    assert work() == (None, False)
    (step / "parts").write_text("12\n")
    assert not store.holds_work(partial)
    (step / "part-00000.json").write_text("{}")
    assert work() == ("read: 1 of 12 parts done", True)
    store.begin(partial, _plan(), keep="work")
    assert store.holds_work(partial)
    store.empty(partial)
    (partial / "stage.json").write_text("{}")  # as publishing leaves it before the last renaming
    assert store.holds_work(partial)
    store.begin(partial, _plan())
    assert work() == (None, False)
    (partial / "checkpoints" / "step-00000500.partial").mkdir(parents=True)
    (partial / "checkpoints" / "step-00000400").mkdir()
    assert work() == ("step 400 is saved", True)


def test_a_lock_that_nobody_holds_has_no_owner_and_that_of_another_program_stays(tmp_path):
    final = tmp_path / "vocab"
    lock = tmp_path / "vocab.lock"
    assert store.owner(final) is None
    with store.artifact_lock(final):
        assert store.owner(final) == f"process {os.getpid()}"
    assert store.owner(final) is None
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    lock.write_text(f"process {gone.pid}")  # as a killed run leaves it
    assert store.owner(final) is None
    for content in ("3\n", "process 12 of mine", "[[package]]"):
        lock.write_text(content)
        with pytest.raises(ArtifactError, match=r"vocab\.lock: is not a lock of korbert"), store.artifact_lock(final):
            pass
        assert lock.read_text() == content


@pytest.mark.parametrize(("change", "said"), [
    ({"files": None}, "files: Input should be a valid dictionary"),
    ({"inputs": []}, "inputs: "),
    ({"counts": {"documents": None}}, "counts.documents: "),
    ({"digest": 3}, "digest: Input should be a valid string"),
    ({"settings": {"size": 9}}, "its digest does not match its content"),
    *((text, "") for text in ("{", "{}", "[]", "null", '{"digest": ' * 3, "[" * 100_000, "\x00", '"' + "1" * 5000)),
])  # fmt: skip
def test_a_record_that_is_none_is_said_with_its_place(tmp_path, change, said):
    path = tmp_path / "vocab" / "stage.json"
    record = _make(tmp_path, _plan(size=8))
    path.write_text(change if isinstance(change, str) else json.dumps({**record, **change}), encoding="utf-8")
    with pytest.raises(ArtifactError, match=rf"vocab/stage\.json: {said}.*move this folder away"):
        store.read_record(tmp_path / "vocab")


def test_each_field_of_a_record_has_to_be_there(tmp_path):
    path = tmp_path / "vocab" / "stage.json"
    for name in _make(tmp_path, _plan(size=8)):
        record = _make(tmp_path, _plan(size=8))
        path.write_text(json.dumps({f"{name[:-1]}?" if key == name else key: record[key] for key in record}))
        with pytest.raises(ArtifactError, match=rf"vocab/stage\.json: {name}: Field required.*move this folder away"):
            store.read_record(tmp_path / "vocab")
        path.write_text(json.dumps(record))


def test_a_changed_file_is_found_and_each_is_hashed_once(tmp_path, monkeypatch):
    record = _make(tmp_path, _plan())
    folder = tmp_path / "vocab"
    path = tmp_path / "vocab" / "tokenizer" / "pieces.txt"
    hashed = []
    monkeypatch.setattr(store, "sha256_of", lambda path: hashed.append(path) or sha256_of(path))
    assert store.changed_file(folder, record) is None
    assert hashed == []  # `finish` had hashed it, and remembered size and time
    os.utime(path, ns=(1, 1))
    assert store.changed_file(folder, record) is None
    assert store.changed_file(folder, record) is None
    assert hashed == [path]
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    assert store.changed_file(folder, record) == path


def test_nothing_but_a_folder_gives_way_to_an_artifact(tmp_path):
    final = tmp_path / "vocab"
    partial = tmp_path / "vocab.partial"
    store.check_place(final)
    (tmp_path / "elsewhere").mkdir()
    final.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match=r"vocab: is a symbolic link, .* choose another root"):
        store.check_place(final)
    final.unlink()
    partial.write_text("mine")
    with pytest.raises(ArtifactError, match=r"vocab\.partial: is not a folder"):
        store.check_place(final)


def _strangers(made):
    """Files of somebody else where a run would put, or remove, something of its own."""
    return {
        "in the artifact": made / "notes.txt",
        "in a folder of the artifact": made / "tokenizer" / "notes.txt",
        "in its work": made / "work" / "notes.txt",
        "in the partial folder": made.with_name("vocab.partial") / "notes.txt",
        "with a record of another program": made.with_name("vocab.partial") / "stage.json",
        "in the older one": made.with_name(".korbert-vocab.old") / "notes.txt",
        "among the curves": made / "tensorboard" / "my.txt",
        "a damaged record": made / "stage.json",
        "a damaged record of the run": made / "run.json",
        "a plan of the name alone": made.with_name("vocab.partial") / "plan.json",
    }


@pytest.mark.parametrize("place", _strangers(Path("vocab")))
def test_a_folder_with_a_file_of_somebody_else_is_neither_removed_nor_moved(tmp_path, place):
    _make(tmp_path, _plan(size=8))
    path = _strangers(tmp_path / "vocab")[place]
    path.parent.mkdir(exist_ok=True)
    path.write_text('["of a rocket"]')
    with pytest.raises(ArtifactError, match="which no readable record of korbert lists: move it away or choose"):
        store.check_place(tmp_path / "vocab")
    with pytest.raises(ArtifactError, match=r"which no readable record of korbert lists|not korbert's: move it away"):
        _make(tmp_path, _plan(size=9))
    store.tidy(tmp_path / "vocab.partial", tmp_path / "vocab")
    assert path.read_text() == '["of a rocket"]'


def test_a_link_in_place_of_a_recorded_file_stays_with_what_it_leads_to(tmp_path):
    _make(tmp_path, _plan(size=8))
    pieces = tmp_path / "vocab" / "tokenizer"
    elsewhere = tmp_path / "elsewhere"
    pieces.rename(elsewhere)
    pieces.symlink_to(elsewhere)
    with pytest.raises(ArtifactError, match="holds tokenizer, which no readable record"):
        _make(tmp_path, _plan(size=9))
    assert (elsewhere / "pieces.txt").is_file()


def test_only_listed_files_are_removed_and_what_stays_is_said(tmp_path, caplog):
    _make(tmp_path, _plan(size=8))
    old = (tmp_path / "vocab").rename(tmp_path / ".korbert-vocab.old")
    (old / "notes.txt").write_text("of someone")
    remove_listed(old, {"stage.json", "run.json", "tokenizer/pieces.txt"}.__contains__)
    assert [path.name for path in old.rglob("*")] == ["notes.txt"]
    assert "stays, since it holds notes.txt, which korbert did not make" in caplog.text


@pytest.mark.parametrize("name", [".DS_Store", "Thumbs.db", "desktop.ini", "._pieces.txt"])
def test_what_file_managers_leave_is_ignored_and_kept(tmp_path, name):
    folder = tmp_path / "vocab"
    record = _make(tmp_path, _plan(size=8))
    litter = (folder / name, folder / "tokenizer" / name)
    for path in litter:
        path.write_text("x")
    assert store.damage(folder, record, hashes=True) is None
    store.check_place(folder)
    record = _make(tmp_path, _plan(size=9), text="바다\n")  # takes the place of the older one
    assert list(record["files"]) == ["tokenizer/pieces.txt"]
    assert [path.read_text() for path in litter] == ["x", "x"]
    assert store.damage(folder, record, hashes=True) is None
