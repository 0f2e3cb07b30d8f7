"""A training meets losses that are no numbers, a full disk and kill -9, and ends in the bytes that it is to end in."""

import logging
import math
import shutil
import signal
import subprocess
import sys
from collections import Counter

import pytest
import torch

from korbert.errors import ModelError
from korbert.interruption import Interrupted
from korbert.training import Checkpointing, checkpoints
from korbert.training.updates import Updates
from tests.korbert.tiny import same_weights
from tests.korbert.training import toy
from tests.korbert.training.test_loop import acting, fitted, lines, same_outcome

BAD = {6: math.inf, 8: math.nan, 10: math.inf}  # updates 7, 9 and 11; checkpoints are made at 7, 14, ..


def left_out(folder):
    return [line["step"] for line in lines(folder / "metrics.jsonl") if line["kind"] == "left_out"]


def test_non_finite_steps_are_skipped_as_if_they_had_never_been(tmp_path, monkeypatch, caplog):
    made, result = toy.train(tmp_path / "made", factors=BAD, skip=True)
    assert result.left_out == 3
    assert left_out(tmp_path / "made") == [7, 9, 11]
    assert checkpoints.load_newest(tmp_path / "made" / "checkpoints").record["left_out"] == [7, 9, 11]
    said = (
        "training: step {}: the loss or its gradient is not a finite number: going back to step {} and leaving it out"
    )
    assert caplog.messages[-3:] == [said.format(step, back) for step, back in ((7, 0), (9, 7), (11, 7))]
    assert [line["step"] for line in lines(tmp_path / "made" / "timing.jsonl") if line["kind"] == "start"] == [0, 7, 7]

    update = Updates.update
    monkeypatch.setattr(Updates, "update", lambda self, step, made: step in BAD or update(self, step, made))
    expected, _ = toy.train(tmp_path / "expected")
    assert same_weights(made, expected)
    others = [line for line in lines(tmp_path / "made" / "metrics.jsonl") if line["kind"] != "left_out"]
    assert others == lines(tmp_path / "expected" / "metrics.jsonl")


@pytest.mark.slow
def test_a_run_killed_around_skipped_steps_ends_in_the_same_bits(tmp_path):
    """Update 9 has a large gradient, which counts as one only if the checkpoint before it holds the usual norm."""
    faults = {"skip": True, "factors": {6: math.inf, 8: 100.0, 16: math.nan}}
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    subprocess.run(toy.command(straight, **faults), check=True)
    for step in (6, 12, 18):
        assert subprocess.run(toy.command(killed, **faults, kill_at=step), check=False).returncode == -signal.SIGKILL
    subprocess.run(toy.command(killed, **faults), check=True)
    same_outcome(killed, straight)
    assert left_out(killed) == [7, 17]
    one, two = (checkpoints.load_newest(folder / "checkpoints") for folder in (killed, straight))
    assert one.record == two.record
    assert one.record["left_out"] == [7, 17]
    assert {line["step"]: line["spikes"] for line in lines(killed / "metrics.jsonl") if "spikes" in line} == {10: 1}


@pytest.mark.slow
def test_two_processes_skip_the_same_steps_as_one(tmp_path, free_port):
    """Only the last process has the row that is not finite, and only rank 0 has a clock."""
    options = {"parts": 2, "dropout": False, "skip": True, "factors": {6: math.inf, 15: math.nan}}
    subprocess.run(toy.command(tmp_path / "one", **options), check=True)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    program = toy.command(tmp_path / "two", **options, hasty=True)[1:]
    subprocess.run([*torchrun, "--master-port", str(free_port), *program], check=True)
    assert left_out(tmp_path / "one") == left_out(tmp_path / "two") == [7, 16]
    for one, two in zip(*(lines(tmp_path / name / "metrics.jsonl") for name in ("one", "two")), strict=True):
        assert two == {key: pytest.approx(value, rel=1e-4) if key != "kind" else value for key, value in one.items()}


def test_too_many_skipped_steps_end_the_run(tmp_path):
    """Where every later step diverges, the rows are not at fault."""
    with pytest.raises(ModelError, match=r"^step 9: .* step 6; .*; 5 of the last 100 steps are left out already$"):
        fitted(
            toy.network(),
            batches=lambda step: [{**toy.batches(step)[0], "factor": torch.tensor(math.inf if step > 2 else 1.0)}],
            on_divergence="skip",
            checkpoints=Checkpointing(tmp_path, every_steps=3),
            steps=20,
        )


def test_skipping_needs_a_checkpoint_to_go_back_to(tmp_path):
    with pytest.raises(ModelError, match=r"^step 7: .*; there is no checkpoint before it; lower learning_rate"):
        fitted(toy.network(), loss=infinite_at_7(), on_divergence="skip")

    def loss(model, batch):
        shutil.rmtree(tmp_path / "step-00000000", ignore_errors=True)
        return {"loss": toy.loss(model, batch)["loss"] * math.inf}

    with pytest.raises(ModelError, match=r"^step 1: the loss or its gradient is not a finite number"):
        fitted(toy.network(), loss=loss, on_divergence="skip", checkpoints=Checkpointing(tmp_path, every_steps=3))


def test_an_interval_without_an_update_has_no_line_of_metrics(tmp_path):
    kept = Checkpointing(tmp_path / "kept", every_steps=3)
    options = {"metrics": tmp_path / "metrics.jsonl", "log_every": 1, "checkpoints": kept}
    result = fitted(toy.network(), loss=infinite_at_7(), on_divergence="skip", **options)
    assert Counter(line["step"] for line in lines(tmp_path / "metrics.jsonl")) == Counter(range(1, 9))
    assert left_out(tmp_path) == [7]
    assert result.left_out == 1


def infinite_at_7():
    """The loss of update 7 is infinite, however often it is computed: it is recognised by its rows."""
    (bad,) = toy.batches(6)

    def loss(model, batch):
        return {"loss": toy.loss(model, batch)["loss"] * (math.inf if torch.equal(batch["ids"], bad["ids"]) else 1.0)}

    return loss


def test_a_signal_ends_a_run_that_goes_back(tmp_path):
    loss = infinite_at_7()
    ended = acting(7, lambda model: signal.raise_signal(signal.SIGTERM), loss)

    kept = Checkpointing(tmp_path, every_steps=4)
    with pytest.raises(Interrupted, match=r"^training: step 5 is saved$"):
        fitted(toy.network(), loss=ended, on_divergence="skip", checkpoints=kept, log_every=100)
    assert checkpoints.load_newest(tmp_path).record["left_out"] == [7]
    other = toy.network(), toy.network()
    fitted(other[0], loss=loss, on_divergence="skip", checkpoints=kept, log_every=100)
    fitted(other[1], loss=loss, on_divergence="skip", checkpoints=Checkpointing(tmp_path / "x", 4), log_every=100)
    assert same_weights(*other)


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
