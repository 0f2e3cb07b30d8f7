import errno
import json
import logging

import pytest
import torch

from korbert.training import checkpoints
from korbert.training.checkpoints import Checkpoint, load_newest, save


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


def _strip(path):
    record = json.loads((path / "record.json").read_text())
    (path / "record.json").write_text(json.dumps({"sha256": record["sha256"]}))


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty, _remove, _strip])
def test_a_damaged_one_is_passed_over(tmp_path, caplog, damage):
    for step in (1, 2):
        save(tmp_path, checkpoint(step), keep=2)
    damage(tmp_path / "step-00000002")
    with caplog.at_level(logging.WARNING):
        assert load_newest(tmp_path).step == 1
    assert "step-00000002: damaged checkpoint (" in caplog.text
    damage(tmp_path / "step-00000001")
    assert load_newest(tmp_path) is None


def test_a_damaged_one_is_replaced_when_its_step_comes_again(tmp_path):
    for step in (1, 2):
        save(tmp_path, checkpoint(step), keep=2)
    _flip(tmp_path / "step-00000002")
    save(tmp_path, checkpoint(2), keep=2)
    assert load_newest(tmp_path).step == 2
