import logging
import re
import signal
import subprocess
import threading

import pytest
import torch
from torch import nn

from korbert.errors import ArtifactError, ModelError
from korbert.system.interruption import Interrupted
from korbert.training import Checkpointing, OptimizerSettings, TrainingOutput, TrainingPlan, fit
from tests.korbert.tiny import json_lines as lines
from tests.korbert.tiny import same_weights
from tests.korbert.training import toy

CPU = torch.device("cpu")
SETTINGS = OptimizerSettings(learning_rate=0.02)


def fitted(model, **changed):
    plan = {"steps": 8, "optimizer": SETTINGS, "seed": 1, "precision": "fp32"}
    plan |= {name: changed.pop(name) for name in TrainingPlan.__slots__ if name in changed}
    output = {name: changed.pop(name) for name in TrainingOutput.__slots__ if name in changed}
    options = {"batches": toy.batches, "loss": toy.loss, "device": CPU} | changed
    return fit(model, plan=TrainingPlan(**plan), output=TrainingOutput(**output), **options)


def acting(number, act, loss=toy.loss):
    """The loss, which does something with the model at its call of that number, from 1 on."""
    calls = iter(range(1, 1000))

    def acts(model, batch):
        if next(calls) == number:
            act(model)
        return loss(model, batch)

    return acts


def same_outcome(folder, straight):
    for file in ("metrics.jsonl", "model.safetensors"):
        assert (folder / file).read_bytes() == (straight / file).read_bytes()


def test_a_run_learns_and_writes_its_files(straight):
    written = lines(straight / "metrics.jsonl")
    assert [line["step"] for line in written if line["kind"] == "train"] == [1, 5, 10, 15, 20, 25, 30, 35, 40]
    assert [line["step"] for line in written if line["kind"] == "heldout"] == [9, 18, 27, 36, 40]
    assert list(written[0]) == ["kind", "step", "pieces", "loss", "accuracy", "learning_rate", "grad_norm"]
    assert all(line["pieces"] == 48 * line["step"] for line in written)
    heldout = [line["heldout_loss"] for line in written if line["kind"] == "heldout"]
    assert heldout[-1] < 0.5 < 3.0 < heldout[0] + 1.5
    times = lines(straight / "timing.jsonl")
    assert times[0] == {"kind": "start", "step": 0}
    assert all(line["seconds"] > line["waited_seconds"] > 0 < line["pieces_per_second"] for line in times[1:])
    assert list((straight / "tensorboard").iterdir())
    assert len(list((straight / "checkpoints").iterdir())) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_the_run_after_the_current_update(tmp_path, straight, number):
    """Step 23 is no multiple of anything: of log_every 5, checkpoints 7, evaluate_every 9."""
    command = toy.command(tmp_path, kill_at=23, number=number)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    (step,) = (
        int(path.name.removeprefix("step-"))
        for path in tmp_path.glob("checkpoints/step-*")
        if path.name != "step-00000021"
    )
    assert step in (22, 23, 24)  # the signal came while the update before was under way, or was about to be
    assert ended.stderr == f"ended: training: step {step} is saved\n"
    assert ended.returncode == 1
    toy.train_and_save(tmp_path)
    same_outcome(tmp_path, straight)
    assert [line["step"] for line in lines(tmp_path / "timing.jsonl") if line["kind"] == "start"] == [0, step]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_run_and_handlers_are_restored(tmp_path, number):
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    loss = acting(5, lambda model: signal.raise_signal(number))
    kept = Checkpointing(tmp_path, every_steps=100)
    with pytest.raises(Interrupted, match=r"^toy: step 5 is saved$") as ended:
        fitted(toy.network(), loss=loss, checkpoints=kept, description="toy")
    assert ended.value.number == number
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000005"]
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
    with pytest.raises(Interrupted, match=r"^$"):  # without checkpoints there is nothing to say
        fitted(toy.network(), loss=acting(1, lambda model: signal.raise_signal(number)))


def test_a_second_ctrl_c_ends_the_run_at_once(tmp_path):
    def act(model):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as ended:
        fitted(toy.network(), loss=acting(5, act), checkpoints=Checkpointing(tmp_path, every_steps=3))
    assert not isinstance(ended.value, Interrupted)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000003"]


def test_ignored_signals_and_other_threads_are_left_alone():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        fitted(toy.network(), loss=lambda model, batch: signal.raise_signal(signal.SIGINT) or toy.loss(model, batch))
    finally:
        signal.signal(signal.SIGINT, before)
    results = []
    thread = threading.Thread(target=lambda: results.append(fitted(toy.network())))
    thread.start()
    thread.join()
    assert results[0].steps == 8


def test_a_non_finite_loss_is_reported_despite_a_signal(tmp_path):
    def broken(model, batch):
        signal.raise_signal(signal.SIGTERM)
        return {"loss": toy.loss(model, batch)["loss"] * float("nan")}

    with pytest.raises(ModelError, match="step 1: the loss or its gradient is not a finite number"):
        fitted(toy.network(), loss=broken, checkpoints=Checkpointing(tmp_path, every_steps=3), log_every=100)
    assert not list(tmp_path.iterdir())


def test_checkpoints_are_written_by_time_as_well_as_by_steps(tmp_path):
    clock = [1000.0]

    def slow(model, batch):
        clock[0] += 100.0
        return toy.loss(model, batch)

    kept = Checkpointing(tmp_path / "kept", every_steps=5, keep=9, clock=lambda: clock[0])
    timed, plain = toy.network(), toy.network()
    fitted(timed, loss=slow, checkpoints=kept, metrics=tmp_path / "timed.jsonl", log_every=2)
    # after 300 s; by number of steps; 300 s behind that, which is the last, too
    assert sorted(path.name for path in kept.folder.iterdir()) == ["step-00000003", "step-00000005", "step-00000008"]
    fitted(plain, metrics=tmp_path / "plain.jsonl", log_every=2)
    assert same_weights(timed, plain)
    assert (tmp_path / "timed.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def test_progress_shows_the_last_logged_figures(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("korbert.system.progress._SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO):
        fitted(toy.network(), steps=5, log_every=2, description="toy", tensorboard=tmp_path / "두 곡선")
    assert caplog.messages[0] == f"curves: tensorboard --logdir '{tmp_path / '두 곡선'}'"
    shown = [message for message in caplog.messages if message.startswith("toy: ")]
    assert len(shown) == 5
    pattern = r"toy: {} of 5 steps, (loss [0-9.]+, rate 0\.[0-9]+, [0-9,]+ pieces/s), \d+ s left"
    figures = [re.fullmatch(pattern.format(step), line)[1] for step, line in enumerate(shown, 1)]
    assert figures[1] == figures[2] != figures[3]  # what was logged last


def test_tensorboard_and_checkpoints_change_no_number(tmp_path):
    drawn, result = toy.train(tmp_path / "drawn")
    undrawn, _ = toy.train(tmp_path / "undrawn", tensorboard=False)
    bare = toy.network()
    fitted(bare, steps=toy.STEPS, seed=5)
    for other in (undrawn, bare):
        assert same_weights(drawn, other)
    assert (tmp_path / "drawn/metrics.jsonl").read_bytes() == (tmp_path / "undrawn/metrics.jsonl").read_bytes()
    assert result.heldout == {"heldout_loss": lines(tmp_path / "drawn/metrics.jsonl")[-1]["heldout_loss"]}


def test_a_finished_run_is_loaded_and_a_damaged_checkpoint_replaced(tmp_path):
    first, done = toy.train(tmp_path, tensorboard=False)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    second, again = toy.train(tmp_path, tensorboard=False)
    assert (again.first_step, again.heldout) == (40, done.heldout)
    assert same_weights(first, second)
    (tmp_path / "checkpoints" / "step-00000040" / "state.safetensors").write_bytes(b"gone")
    _, result = toy.train(tmp_path, tensorboard=False)
    assert (result.first_step, result.steps, (tmp_path / "metrics.jsonl").read_bytes()) == (35, 40, before)


def test_a_signal_during_the_last_evaluation_ends_the_run(tmp_path):
    def evaluate(model, step):
        signal.raise_signal(signal.SIGTERM)
        return toy.evaluate(model, step)

    model = toy.network()
    options = {"steps": 2, "evaluate_every": 2, "checkpoints": Checkpointing(tmp_path, 100)}
    with pytest.raises(Interrupted, match="step 2 is saved"):
        fitted(model, evaluate=evaluate, **options)
    again = toy.network()
    fitted(again, evaluate=toy.evaluate, **options)
    assert same_weights(model, again)


def uneven(step):
    """Micro-batches of 2 and 6 rows, weighted by their rows."""
    (batch,) = toy.batches(step)
    return [
        {"ids": batch["ids"][rows], "weight": torch.tensor(share)}
        for rows, share in ((slice(0, 2), 0.25), (slice(2, 8), 0.75))
    ]


@pytest.mark.parametrize("split", [lambda step: toy.batches(step, parts=2), uneven], ids=["equal", "uneven"])
def test_micro_batches_are_one_big_batch(split):
    whole, accumulated = toy.network(), toy.network()
    whole[1].p = accumulated[1].p = 0.0  # dropout would be drawn for other shapes
    fitted(whole)
    fitted(accumulated, batches=split)
    torch.testing.assert_close(accumulated.state_dict(), whole.state_dict(), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_non_finite_loss_names_its_step_and_saves_no_checkpoint(tmp_path, bad):
    calls = iter(range(100))
    message = r"step 5: .* number; the last good checkpoint is that of step 3; lower learning_rate \(0.02\)"
    with pytest.raises(ModelError, match=message):
        fitted(
            toy.network(),
            loss=lambda model, batch: {"loss": toy.loss(model, batch)["loss"] * (bad if next(calls) == 4 else 1.0)},
            checkpoints=Checkpointing(tmp_path, every_steps=3),
        )
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000003"]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    kept = Checkpointing(tmp_path, every_steps=4)
    fitted(toy.network(), checkpoints=kept)
    message = r"step 8 is of another run \(steps: 9 here, 8 there; optimizer.learning_rate: 0.1 here, 0.02 there\)"
    with pytest.raises(ArtifactError, match=message):
        fitted(toy.network(), checkpoints=kept, steps=9, optimizer=OptimizerSettings(learning_rate=0.1))
    other = nn.Sequential(*toy.network()[:4], nn.Linear(32, 60))
    with pytest.raises(ArtifactError, match=r"of another run \(a model with other tensors\): remove the checkpoints"):
        fitted(other, checkpoints=kept)
