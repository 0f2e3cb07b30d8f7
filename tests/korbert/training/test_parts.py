"""Checkpoints of sharded models, by real processes that talk over gloo."""

import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from korbert.training import parts
from korbert.training.checkpoints import load, load_newest

TOY = Path(__file__).with_name("sharded_toy.py")


def ran(folder: Path, processes: int, *options: str, also: Mapping[int, Sequence[str]] | None = None) -> list[str]:
    """What each process says at its end; "killed" if it was. also: options of some of them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RANK", "WORLD_SIZE"))}
    running = []
    for rank in range(processes):
        ranked = {"RANK": str(rank), "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        command = [sys.executable, str(TOY), str(folder), *options, *(also or {}).get(rank, ())]
        settings = environment | (ranked if processes > 1 else {})
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        running.append(subprocess.Popen(command, env=settings, text=True, **pipes))
    said = [process.communicate(timeout=100) for process in running]
    return ["killed" if p.returncode == -9 else "".join(s).strip() for p, s in zip(running, said, strict=True)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def bytes_of(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two processes, sharded, that nothing has ended. Each of its checkpoints has two parts."""
    folder = tmp_path_factory.mktemp("straight")
    assert ran(folder, 2) == ["resumed at 0", ""]
    return folder


def test_each_process_writes_its_part(straight):
    assert names(straight) == ["step-00000028", "step-00000030"]
    folder = straight / "checkpoints" / "step-00000030"
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["record.json", *(f"shard-0000{rank}-model-00001-of-00001.safetensors" for rank in (1, 2))]
    held = [load_file(folder / name) for name in files[1:]]
    assert [part["model/words.weight"].shape for part in held] == [(25, 15), (25, 15)]
    assert sum(part.get("model/shift", torch.empty(0)).numel() for part in held) == 3  # what all have is written once


def test_one_process_reads_them_as_a_whole(straight):
    found = load_newest(straight / "checkpoints")
    assert {tensor.device.type for tensor in found.tensors.values()} == {"meta"}
    tensors = {name: torch.empty_like(tensor, device="cpu") for name, tensor in found.tensors.items()}
    parts.read(found.parts, tensors)
    model = load_file(straight / "model.safetensors")
    assert {name for name in tensors if name.startswith("model/")} == {f"model/{name}" for name in model}
    for name, value in model.items():
        assert torch.equal(tensors[f"model/{name}"], value)
    assert tensors["optimizer/scale/step"] == 30


def test_training_goes_on_while_they_are_written_and_a_kill_in_it_costs_no_bit(straight, tmp_path):
    """The first checkpoint is written two updates late, and holds the state of its step; the second one is cut off."""
    said = ran(tmp_path, 2, "--late", also={1: ["--fault", "part"]})
    assert said[1] == "killed"
    assert said[0].startswith("ModelError: one of 2 processes has ended without a word")
    assert names(tmp_path) == ["step-00000007", "step-00000014.partial"]
    assert ran(tmp_path, 2) == ["resumed at 7", ""]
    assert names(tmp_path) == names(straight)
    assert bytes_of(tmp_path) == bytes_of(straight)


@pytest.mark.slow
def test_all_are_killed_before_the_record_is_on_the_disk(straight, tmp_path):
    said = ran(tmp_path, 2, "--fault", "record")
    assert said[0] == "killed"
    assert names(tmp_path) == ["step-00000007", "step-00000014.partial"]
    assert ran(tmp_path, 2) == ["resumed at 7", ""]
    assert bytes_of(tmp_path) == bytes_of(straight)


def test_a_signal_to_one_process_stops_all_with_the_state_on_the_disk(straight, tmp_path):
    said = ran(tmp_path, 2, also={1: ["--stop-at", "10"]})
    assert said == ["ended: training: step 11 is saved"] * 2
    assert names(tmp_path) == ["step-00000007", "step-00000011"]
    assert ran(tmp_path, 2) == ["resumed at 11", ""]
    assert bytes_of(tmp_path) == bytes_of(straight)


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_full_disk_of_any_process_leaves_the_checkpoint_before(tmp_path, rank):
    said = ran(tmp_path, 2, also={rank: ["--fault", "full"]})
    partial = tmp_path / "checkpoints" / "step-00000014.partial"
    assert sum(f"[Errno 28] No space left on device: '{partial}'" in text for text in said) == 1, said
    assert sum("EndedElsewhere: another process tells why" in text for text in said) == 1, said
    assert names(tmp_path) == ["step-00000007"]


def test_any_number_of_processes_and_either_kind_go_on(straight, tmp_path):
    stations = [(3, ["--stop-at", "10"]), (2, ["--stop-at", "13"]), (1, ["--stop-at", "16"]),
                (2, ["--whole", "--stop-at", "19"])]  # fmt: skip
    for processes, options in stations:
        said = ran(tmp_path, processes, *options)
        assert said[0] == f"ended: training: step {int(options[-1]) + 1} is saved"
        newest = tmp_path / "checkpoints" / f"step-{int(options[-1]) + 1:08d}"
        kept = len(list(newest.glob("shard-*"))) or len(list(newest.glob("state.safetensors")))
        assert kept == (1 if "--whole" in options else processes)
    assert ran(tmp_path, 3) == ["resumed at 20", "", ""]
    one, two = load_file(straight / "model.safetensors"), load_file(tmp_path / "model.safetensors")
    for name in one:
        torch.testing.assert_close(two[name], one[name], atol=1e-4, rtol=1e-3)


def _flip(place):
    def damage(folder: Path) -> None:
        part = sorted(folder.glob("shard-*"))[place]
        content = bytearray(part.read_bytes())
        content[-1] ^= 1
        part.write_bytes(content)

    return damage


def _lose(folder: Path) -> None:
    next(folder.glob("shard-*")).unlink()


def _add(folder: Path) -> None:
    first = next(folder.glob("shard-*"))
    shutil.copy(first, folder / "shard-00003-model-00001-of-00001.safetensors")


def _unseal(folder: Path) -> None:
    record = folder / "record.json"
    record.write_text(record.read_text().replace("shard-00001", "shard-00004"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_flip(0), "shard-00001-model-00001-of-00001.safetensors has SHA-256 "),
        (_flip(1), "shard-00002-model-00001-of-00001.safetensors has SHA-256 "),
        (_lose, "its files are shard-0000"),
        (_add, "shard-00003-model-00001-of-00001.safetensors, those of record.json shard-00001"),
        (_unseal, "record.json is not as it was written"),
    ],
)
def test_a_damaged_one_is_passed_over(straight, tmp_path, caplog, damage, message):
    shutil.copytree(straight / "checkpoints", tmp_path / "kept")
    damage(tmp_path / "kept" / "step-00000030")
    with caplog.at_level(logging.WARNING):
        assert load_newest(tmp_path / "kept").step == 28
    assert "step-00000030: damaged checkpoint (" in caplog.text
    assert message in caplog.text


def test_what_rank_0_has_verified_is_not_read_again(straight, tmp_path):
    shutil.copytree(straight / "checkpoints", tmp_path / "kept")
    _flip(1)(tmp_path / "kept" / "step-00000030")
    assert load(tmp_path / "kept", 30, parts_verified=True).step == 30
    with pytest.raises(ValueError, match="shard-00002"):
        load(tmp_path / "kept", 30)
