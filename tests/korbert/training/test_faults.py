"""A training meets large gradients and kill -9, and ends in the bytes that it is to end in."""

import signal
import subprocess
import sys

import pytest

from tests.korbert.training import toy
from tests.korbert.training.test_loop import lines, same_outcome


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(tmp_path, free_port):
    """Only the last process has the large gradient, and only rank 0 has a clock."""
    options = {"parts": 2, "dropout": False, "factors": {6: 100.0}}
    subprocess.run(toy.command(tmp_path / "one", **options), check=True)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    program = toy.command(tmp_path / "two", **options, hasty=True)[1:]
    subprocess.run([*torchrun, "--master-port", str(free_port), *program], check=True)
    for one, two in zip(*(lines(tmp_path / name / "metrics.jsonl") for name in ("one", "two")), strict=True):
        assert two == {key: pytest.approx(value, rel=1e-4) if key != "kind" else value for key, value in one.items()}


@pytest.mark.slow
def test_a_run_killed_while_writing_checkpoints_ends_in_the_same_bits(tmp_path, straight):
    for fault in ({"kill_in_checkpoint": 2}, {"kill_in_checkpoint": 1}, {"kill_at": 39}):
        assert subprocess.run(toy.command(tmp_path / "killed", **fault), check=False).returncode == -signal.SIGKILL
    subprocess.run(toy.command(tmp_path / "killed"), check=True)
    same_outcome(tmp_path / "killed", straight)
    starts = [line["step"] for line in lines(tmp_path / "killed" / "timing.jsonl") if line["kind"] == "start"]
    assert starts == [0, 7, 7, 35]
    assert not list((tmp_path / "killed" / "checkpoints").glob("*.partial"))
