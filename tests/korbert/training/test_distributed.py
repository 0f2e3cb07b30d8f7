import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from korbert.errors import ModelError, SettingsError
from korbert.training.distributed import World, add_over_world, joined, refuse_environment, world, wrap

CPU = torch.device("cpu")
TOY = Path(__file__).with_name("toy.py")


def test_without_torchrun_there_is_one_process_and_nothing_changes(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    module = nn.Linear(2, 2)
    with joined(CPU) as here:
        assert here == world() == World(rank=0, size=1)
        assert here.writes
        assert wrap(module, here) is module
        assert add_over_world(torch.tensor(3.0), here) == 3.0
        assert not torch.distributed.is_initialized()


def test_ranks_come_from_torchrun(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert world() == World(rank=3, size=4)
    assert not world().writes


@pytest.mark.parametrize(
    ("rank", "size", "message"),
    [
        ("1", "1", r"^RANK=1 WORLD_SIZE=1: RANK does not fit WORLD_SIZE: run `unset RANK WORLD_SIZE LOCAL_RANK`"),
        ("1", None, "^RANK=1: RANK does not fit WORLD_SIZE"),
        (None, "2", "^WORLD_SIZE=2: RANK does not fit WORLD_SIZE"),
        ("-1", "2", "^RANK=-1 WORLD_SIZE=2: RANK does not fit"),
        ("0", "0", "^RANK=0 WORLD_SIZE=0: RANK does not fit"),
        ("one", "2", "^RANK='one': is not an integer: run `unset"),
        ("0", "", "^WORLD_SIZE='': is not an integer"),
        ("0", "9" * 5000, "^WORLD_SIZE='9{40}': is not an integer"),
    ],
)
def test_an_environment_that_cannot_be_is_refused(monkeypatch, rank, size, message):
    for name, value in (("RANK", rank), ("WORLD_SIZE", size)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=message):
        world()
    with pytest.raises(SettingsError, match=message):
        refuse_environment()


def test_a_stage_refuses_to_be_one_of_several(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    refuse_environment()
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1")):  # one process under torchrun is one process
        monkeypatch.setenv(name, value)
    refuse_environment()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        SettingsError, match=r"^RANK=0 WORLD_SIZE=2: this would be one of several processes, but a stage trai"
    ):
        refuse_environment()


def test_micro_batches_have_to_be_shared_evenly():
    from korbert.training.plan import TrainingPlan
    from korbert.training.settings import OptimizerSettings
    from korbert.training.updates import Updates

    plan = TrainingPlan(1, OptimizerSettings(), 0, "fp32")
    updates = Updates(nn.Linear(2, 2), lambda model, batch: {}, plan, CPU, World())
    updates._here = World(rank=0, size=2)
    with pytest.raises(
        ModelError, match="3 micro-batches a step cannot be shared evenly by 2 processes: take a multiple"
    ):
        updates.update(0, [{}] * 3)


@pytest.mark.slow
def test_two_processes_train_as_one_with_two_micro_batches(tmp_path):
    arguments = ["--parts", "2", "--no-dropout"]
    subprocess.run([sys.executable, TOY, tmp_path / "one", *arguments], check=True)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    subprocess.run([*torchrun, "--master-port", "29581", TOY, tmp_path / "two", *arguments], check=True)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name in one:
        torch.testing.assert_close(two[name], one[name], atol=1e-5, rtol=1e-4)
