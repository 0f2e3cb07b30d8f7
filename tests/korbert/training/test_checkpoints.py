import json
import logging
import random
import shutil

import pytest
import torch

from korbert.errors import ArtifactError
from korbert.training.checkpoints import Checkpoint, load_newest, remove_all, save


def checkpoint(step):
    tensors = {"model/weight": torch.full((2, 3), float(step)), "model/half": torch.ones(2, dtype=torch.bfloat16)}
    return Checkpoint(step, tensors, {"plan": {"steps": 9}, "rate": 0.1 + 0.2})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_two_are_kept_and_unfinished_ones_removed(tmp_path):
    (tmp_path / "new" / "step-00000099.partial").mkdir(parents=True)
    for step in (1, 2, 10):
        save(tmp_path / "new", checkpoint(step), keep=2)
    assert names(tmp_path / "new") == ["step-00000002", "step-00000010"]
    (tmp_path / "new" / "step-00000011.partial").mkdir()
    loaded = load_newest(tmp_path / "new")
    assert loaded.step == 10
    assert loaded.record == {"plan": {"steps": 9}, "rate": 0.1 + 0.2}
    assert torch.equal(loaded.tensors["model/weight"], torch.full((2, 3), 10.0))
    assert loaded.tensors["model/half"].dtype == torch.bfloat16
    assert load_newest(tmp_path / "absent") is None


def cut(path):
    (path / "state.safetensors").write_bytes((path / "state.safetensors").read_bytes()[:-3])


def _no_folder(path):
    shutil.rmtree(path)
    path.write_text("step")


def changed(**changes):
    """Changes entries of the record, None removes them; what was sealed is not sealed again."""

    def damage(path):
        record = json.loads((path / "record.json").read_text()) | changes
        record = {name: value for name, value in record.items() if value is not None}
        (path / "record.json").write_text(json.dumps(record, indent=1))

    return damage


def record_of(text):
    return lambda path: (path / "record.json").write_bytes(text)


DAMAGES = {
    "cut tensors": cut,
    "no tensors": lambda path: (path / "state.safetensors").unlink(),
    "a file in place of the folder": _no_folder,
    "no plan": changed(plan=None),
    "another step": changed(step=7),
    "a rate that is infinite": changed(rate=float("inf")),
    "an older korbert's": changed(record_sha256=None),
    "a seal that is a number": changed(record_sha256=1),
    "a list": record_of(b"[]"),
    "an empty file": record_of(b""),
    "nothing in it": record_of(b"{}"),
    "a long number": record_of(b'{"record_sha256": ' + b"9" * 5000 + b"}"),
    "deep": record_of(b"[" * 100_000),
    "not UTF-8": record_of(b'{"record_sha256": "\xff"}'),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_is_skipped(tmp_path, caplog, damage):
    for step in (1, 2):
        save(tmp_path, checkpoint(step), keep=2)
    damage(tmp_path / "step-00000002")
    with caplog.at_level(logging.WARNING):
        assert load_newest(tmp_path).step == 1
    assert "step-00000002: damaged checkpoint (" in caplog.text
    damage(tmp_path / "step-00000001")
    assert load_newest(tmp_path) is None


def test_every_changed_byte_is_found(tmp_path, caplog):
    save(tmp_path, checkpoint(2), keep=2)
    draw = random.Random(5)
    for name in ("record.json", "state.safetensors"):
        path = tmp_path / "step-00000002" / name
        whole = path.read_bytes()
        for place in range(len(whole)):
            changed = bytearray(whole)
            changed[place] ^= 1 << draw.randrange(8)
            path.write_bytes(changed)
            assert load_newest(tmp_path) is None, (name, place)
        path.write_bytes(whole)
    assert load_newest(tmp_path).step == 2


def test_other_names_are_ignored(tmp_path, caplog):
    """Neither read nor counted nor removed."""
    (tmp_path / "step-xyz").mkdir()
    (tmp_path / "step-00000009.old").mkdir()
    for step in (1, 99_999_999, 100_000_000):  # sorted as numbers
        save(tmp_path, checkpoint(step), keep=2)
    assert load_newest(tmp_path).step == 100_000_000
    assert names(tmp_path) == ["step-00000009.old", "step-100000000", "step-99999999", "step-xyz"]
    assert not caplog.text


@pytest.mark.parametrize("keep", [1, 2])
def test_damaged_checkpoints_of_later_steps_are_removed(tmp_path, keep):
    for step in (3, 4):
        save(tmp_path, checkpoint(step), keep=2)
        cut(tmp_path / f"step-0000000{step}")
    save(tmp_path, checkpoint(1), keep=keep)
    assert load_newest(tmp_path).step == 1
    assert names(tmp_path) == ["step-00000001"]


@pytest.mark.parametrize("name", ["step-00000001", "step-00000001.partial", "step-00000000"])
@pytest.mark.parametrize("inside", [None, "thesis.hwp"])
def test_other_files_are_never_removed(tmp_path, name, inside):
    path = tmp_path / name if inside is None else tmp_path / name / inside
    path.parent.mkdir(exist_ok=True)
    path.write_text("of someone")
    with pytest.raises(ArtifactError, match=rf"{name}: is not a folder of korbert, so it is not removed: move it away"):
        save(tmp_path, checkpoint(1), keep=1)
    assert path.read_text() == "of someone"


def test_remove_all_keeps_other_files(tmp_path):
    for name in ("checkpoints", "others"):
        save(tmp_path / name, checkpoint(1), keep=1)
    (tmp_path / "checkpoints" / "thesis.hwp").write_text("of someone")
    for name in ("checkpoints", "others"):
        remove_all(tmp_path / name)
    assert names(tmp_path) == ["checkpoints"]
    assert names(tmp_path / "checkpoints") == ["thesis.hwp"]
