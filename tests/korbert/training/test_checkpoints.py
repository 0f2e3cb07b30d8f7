import errno
import json
import logging
import random
import shutil

import pytest
import torch

from korbert.errors import ArtifactError
from korbert.training import checkpoints
from korbert.training.checkpoints import Checkpoint, load_newest, remove_all, save


def checkpoint(step):
    tensors = {"model/weight": torch.full((2, 3), float(step)), "model/half": torch.ones(2, dtype=torch.bfloat16)}
    return Checkpoint(step, tensors, {"plan": {"steps": 9}, "rate": 0.1 + 0.2})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_saved_is_loaded(tmp_path):
    save(tmp_path / "new", checkpoint(3), keep=2)
    found = load_newest(tmp_path / "new")
    assert (found.step, found.record) == (3, {"plan": {"steps": 9}, "rate": 0.1 + 0.2})
    assert torch.equal(found.tensors["model/weight"], torch.full((2, 3), 3.0))
    assert found.tensors["model/half"].dtype == torch.bfloat16


def test_the_last_two_stay_and_half_written_ones_go(tmp_path):
    (tmp_path / "step-00000099.partial").mkdir()
    for step in (1, 2, 10):
        save(tmp_path, checkpoint(step), keep=2)
    assert names(tmp_path) == ["step-00000002", "step-00000010"]
    assert load_newest(tmp_path).step == 10


def test_a_half_written_one_is_not_seen(tmp_path):
    save(tmp_path, checkpoint(1), keep=2)
    (tmp_path / "step-00000002.partial").mkdir()
    assert load_newest(tmp_path).step == 1


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    save(tmp_path, checkpoint(1), keep=2)

    def full(tensors, path):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save_file", full)
        with pytest.raises(OSError, match="No space left on device"):
            save(tmp_path, checkpoint(2), keep=2)
    assert load_newest(tmp_path).step == 1
    save(tmp_path, checkpoint(2), keep=2)
    assert names(tmp_path) == ["step-00000001", "step-00000002"]


def test_no_folder_no_checkpoint(tmp_path):
    assert load_newest(tmp_path / "absent") is None


def _truncate(path):
    state = path / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-3])


def _flip(path):
    state = path / "state.safetensors"
    content = bytearray(state.read_bytes())
    content[-1] ^= 1
    state.write_bytes(content)


def _empty(path):
    (path / "state.safetensors").write_bytes(b"")
    (path / "record.json").write_text("")


def _remove(path):
    (path / "state.safetensors").unlink()


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
    def damage(path):
        (path / "record.json").write_bytes(text)

    return damage


DAMAGES = {
    "cut tensors": _truncate,
    "a flipped bit": _flip,
    "both empty": _empty,
    "no tensors": _remove,
    "a file in place of the folder": _no_folder,
    "no plan": changed(plan=None),
    "another step": changed(step=7),
    "a step that is text": changed(step="2"),
    "a plan that is a list": changed(plan=[]),
    "a rate that is no number": changed(rate=float("nan")),
    "a rate that is infinite": changed(rate=float("inf")),
    "one entry more": changed(more=1),
    "an older korbert's": changed(record_sha256=None),
    "a seal that is a number": changed(record_sha256=1),
    "no digest of the tensors": changed(sha256=None),
    "a list": record_of(b"[]"),
    "nothing in it": record_of(b"{}"),
    "null": record_of(b"null"),
    "text": record_of(b'"record_sha256"'),
    "cut short": record_of(b'{"step": 2, "sha2'),
    "a long number": record_of(b'{"record_sha256": ' + b"9" * 5000 + b"}"),
    "deep": record_of(b"[" * 100_000),
    "not UTF-8": record_of(b'{"record_sha256": "\xff"}'),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_one_is_passed_over(tmp_path, caplog, damage):
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


def test_another_spelling_of_the_same_record_is_not_as_it_was_written(tmp_path, caplog):
    """Otherwise a changed byte might be taken for none: 1e-05 and 1E-05 are one number."""
    save(tmp_path, Checkpoint(2, {}, {"plan": {}, "rate": 1e-05}), keep=2)
    path = tmp_path / "step-00000002" / "record.json"
    path.write_text(path.read_text().replace("1e-05", "1E-05"))
    assert load_newest(tmp_path) is None
    assert "step-00000002: damaged checkpoint (record.json is not as it was written)" in caplog.text


def test_an_older_one_is_said_to_be_older(tmp_path, caplog):
    save(tmp_path, checkpoint(2), keep=2)
    changed(record_sha256=None)(tmp_path / "step-00000002")
    assert load_newest(tmp_path) is None
    assert "record.json has no record_sha256: it is not a record, or was written by an older korbert" in caplog.text


def test_what_is_named_otherwise_is_no_checkpoint(tmp_path, caplog):
    """Neither read nor counted nor removed."""
    (tmp_path / "step-xyz").mkdir()
    (tmp_path / "step-00000009.old").mkdir()
    for step in (1, 2, 3):
        save(tmp_path, checkpoint(step), keep=2)
    assert load_newest(tmp_path).step == 3
    assert names(tmp_path) == ["step-00000002", "step-00000003", "step-00000009.old", "step-xyz"]
    assert not caplog.text


def test_steps_are_numbers(tmp_path):
    for step in (99_999_999, 100_000_000):
        save(tmp_path, checkpoint(step), keep=2)
    assert load_newest(tmp_path).step == 100_000_000


@pytest.mark.parametrize("keep", [1, 2])
def test_damaged_ones_do_not_crowd_out_what_is_made_anew(tmp_path, keep):
    for step in (3, 4):
        save(tmp_path, checkpoint(step), keep=2)
        _flip(tmp_path / f"step-0000000{step}")
    save(tmp_path, checkpoint(1), keep=keep)
    assert load_newest(tmp_path).step == 1
    assert names(tmp_path) == ["step-00000001"]


@pytest.mark.parametrize("name", ["step-00000001", "step-00000001.partial", "step-00000000"])
@pytest.mark.parametrize("inside", [None, "thesis.hwp"])
def test_what_is_no_checkpoint_is_never_removed(tmp_path, name, inside):
    path = tmp_path / name if inside is None else tmp_path / name / inside
    path.parent.mkdir(exist_ok=True)
    path.write_text("of someone")
    with pytest.raises(ArtifactError, match=rf"{name}: is not a folder of korbert, so it is not removed: move it away"):
        save(tmp_path, checkpoint(1), keep=1)
    assert path.read_text() == "of someone"


def test_only_checkpoints_of_ours_are_removed_with_their_folder(tmp_path):
    save(tmp_path / "checkpoints", checkpoint(1), keep=1)
    (tmp_path / "checkpoints" / "thesis.hwp").write_text("of someone")
    remove_all(tmp_path / "checkpoints")
    assert names(tmp_path / "checkpoints") == ["thesis.hwp"]
    save(tmp_path / "others", checkpoint(1), keep=1)
    remove_all(tmp_path / "others")
    assert names(tmp_path) == ["checkpoints"]


def test_a_damaged_one_is_replaced_when_its_step_comes_again(tmp_path):
    for step in (1, 2):
        save(tmp_path, checkpoint(step), keep=2)
    _flip(tmp_path / "step-00000002")
    save(tmp_path, checkpoint(2), keep=2)
    assert load_newest(tmp_path).step == 2
