"""A training meets large gradients and kill -9, and ends in the bytes that it is to end in."""

import logging
import signal
import subprocess
import sys

import pytest

from tests.korbert.training import toy
from tests.korbert.training.test_loop import lines, same_outcome


@pytest.mark.slow
def test_a_run_killed_after_a_spike_counts_it(tmp_path):
    """Update 9 has a large gradient, which counts as one only if the checkpoint before it holds the usual norm."""
    faults = {"factors": {8: 100.0}}
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    subprocess.run(toy.command(straight, **faults), check=True)
    for step in (9, 18):
        assert subprocess.run(toy.command(killed, **faults, kill_at=step), check=False).returncode == -signal.SIGKILL
    subprocess.run(toy.command(killed, **faults), check=True)
    same_outcome(killed, straight)
    assert {line["step"]: line["spikes"] for line in lines(killed / "metrics.jsonl") if "spikes" in line} == {10: 1}


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


def test_spikes_are_counted_and_logged_once(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        toy.train(tmp_path, factors={11: 100.0, 13: 1e3, 22: 9.0}, tensorboard=False)
    assert {line["step"]: line["spikes"] for line in lines(tmp_path / "metrics.jsonl") if "spikes" in line} == {15: 2}
    assert caplog.messages == [
        "training: step 15: 2 gradient norms since the last line of metrics are above 10 times the mean before it"
    ]


@pytest.mark.slow
def test_a_run_killed_while_writing_checkpoints_ends_in_the_same_bits(tmp_path, straight):
    for fault in ({"kill_in_checkpoint": 2}, {"kill_in_checkpoint": 1}, {"kill_at": 39}):
        assert subprocess.run(toy.command(tmp_path / "killed", **fault), check=False).returncode == -signal.SIGKILL
    subprocess.run(toy.command(tmp_path / "killed"), check=True)
    same_outcome(tmp_path / "killed", straight)
    starts = [line["step"] for line in lines(tmp_path / "killed" / "timing.jsonl") if line["kind"] == "start"]
    assert starts == [0, 7, 7, 35]
    assert not list((tmp_path / "killed" / "checkpoints").glob("*.partial"))
