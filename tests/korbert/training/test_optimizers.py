import typing

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from korbert.modeling import PretrainingModel
from korbert.training import Checkpointing, OptimizerSettings, TrainingOutput, TrainingPlan, fit
from korbert.training.plan import ScheduleKind
from korbert.training.updates import Optimizer
from tests.korbert.tiny import json_lines, same_weights, tiny_config
from tests.korbert.training import toy

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
FACTORS = {"0.weight": 0.2, "4.weight": 0.5, "4.bias": 0.5}  # of the embedding and the head of toy.network


def trained(folder, settings, *, end_at=None):
    """A model after its run, of which checkpoints are made every 4 steps. end_at: the batch that interrupts it."""

    def until(step):
        if step == end_at:
            raise KeyboardInterrupt
        return toy.batches(step)

    model = toy.network()
    fit(
        model,
        until,
        toy.loss,
        TrainingPlan(10, settings, seed=3, precision="fp32", log_every=2, evaluate_every=3, rate_factors=FACTORS),
        device=torch.device("cpu"),
        output=TrainingOutput(Checkpointing(folder, every_steps=4), metrics=folder / "metrics.jsonl"),
        evaluate=lambda model, done: {"weights": float(sum(p.sum() for p in model.parameters()))},
    )
    return model


@pytest.mark.parametrize("schedule", typing.get_args(ScheduleKind))
def test_stopped_and_resumed_bit_for_bit(tmp_path, schedule):
    settings = OptimizerSettings(schedule=schedule, learning_rate=0.02)
    straight = trained(tmp_path / "straight", settings)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped", settings, end_at=6)
    assert [path.name for path in (tmp_path / "stopped").glob("step-*")] == ["step-00000004"]

    assert same_weights(straight, trained(tmp_path / "stopped", settings))
    for file in ("step-00000010/state.safetensors", "metrics.jsonl"):
        assert (tmp_path / "straight" / file).read_bytes() == (tmp_path / "stopped" / file).read_bytes()


def drawn_gradients(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.device)


def pretraining_model():
    return PretrainingModel(tiny_config(), torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("make", "kind", "factors", "device"), [
    (toy.network, "adamw", FACTORS, "cpu"), pytest.param(toy.network, "adamw", FACTORS, "cuda", marks=GPU),
    (pretraining_model, "muon", {}, "cpu"),
])  # fmt: skip
def test_a_restored_optimizer_makes_the_same_steps(make, kind, factors, device):
    one, two = (make().to(device) for _ in range(2))
    first, second = (Optimizer(model, OptimizerSettings(kind=kind), factors) for model in (one, two))
    for seed in range(3):
        drawn_gradients(one, seed)
        first.step(1.0)
    two.load_state_dict(one.state_dict())
    second.restore({name: value.cpu().clone() for name, value in first.state().items()})
    for rate in (1.0, 0.5):
        for model, optimizer in ((one, first), (two, second)):
            drawn_gradients(model, seed=9)
            optimizer.step(rate)
    assert same_weights(one, two)
    assert ("encoder.layers.0.attention.qkv.weight/momentum_buffer" in first.state()) == (kind == "muon")


def test_the_checkpoint_holds_all_state_by_name(tmp_path):
    trained(tmp_path, OptimizerSettings())
    names = [name for name, _ in toy.network().named_parameters()]
    expected = {f"model/{name}" for name in names}
    expected |= {f"optimizer/{name}/{key}" for name in names for key in ("step", "exp_avg", "exp_avg_sq")}
    assert load_file(tmp_path / "step-00000010/state.safetensors").keys() == expected


def test_the_rate_follows_the_schedule(tmp_path):
    trained(tmp_path, OptimizerSettings(learning_rate=0.01, warmup_share=0.2))
    logged = [line for line in json_lines(tmp_path / "metrics.jsonl") if line["kind"] == "train"]
    assert list(logged[0]) == ["kind", "step", "pieces", "loss", "accuracy", "learning_rate", "grad_norm"]
    shares = [0.5, 1.0, 7 / 8, 5 / 8, 3 / 8, 1 / 8]  # of steps 1, 2, 4, 6, 8 and 10
    assert [line["learning_rate"] for line in logged] == pytest.approx([0.01 * share for share in shares])


def test_set_rates_are_the_rates_of_the_update():
    torch.manual_seed(0)
    model = nn.ModuleDict({"one": nn.Linear(3, 3, bias=False), "two": nn.Linear(3, 3, bias=False)})
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = Optimizer(model, OptimizerSettings(learning_rate=0.1, weight_decay=0.0), {"two.weight": 3.0})
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step(0.5)
    assert all(parameter.grad is None for parameter in model.parameters())
    # the first step of Adam is its rate
    for name, rate in (("one.weight", 0.05), ("two.weight", 0.15)):
        torch.testing.assert_close(before[name] - model.get_parameter(name), torch.full((3, 3), rate))


def groups_of(monkeypatch, model, rate_factors):
    """Name -> (rate, weight decay)."""
    made = []
    names = {parameter: name for name, parameter in model.named_parameters()}
    monkeypatch.setattr(torch.optim, "AdamW", lambda groups, **settings: made.extend(groups))
    Optimizer(model, OptimizerSettings(learning_rate=0.01, weight_decay=0.1), rate_factors)
    return {names[own]: (group["lr"], group["weight_decay"]) for group in made for own in group["params"]}


@pytest.mark.parametrize("architecture", ["bert", "modern"])
def test_matrices_decay_and_vectors_do_not(monkeypatch, architecture):
    model = PretrainingModel(tiny_config(architecture))
    slower = "encoder.embeddings.token.weight"
    expected = {name: (0.01, 0.1 if parameter.ndim == 2 else 0.0) for name, parameter in model.named_parameters()}
    assert groups_of(monkeypatch, model, {slower: 0.5}) == {**expected, slower: (0.005, 0.1)}


def test_frozen_parameters_are_in_no_group(monkeypatch):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[0].weight.requires_grad_(False)
    assert groups_of(monkeypatch, model, {}).keys() == {"0.bias", "1.weight", "1.bias"}


def test_muon_makes_orthogonal_updates_of_layers_and_adamw_all_others():
    model = pretraining_model()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    drawn_gradients(model, seed=1)
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    Optimizer(model, OptimizerSettings(kind="muon", learning_rate=0.01, weight_decay=0.0), {}).step(1.0)
    for name, parameter in model.named_parameters():
        change = before[name] - parameter.detach()
        if not name.startswith("encoder.layers.") or parameter.ndim < 2:
            assert change.abs().max() == pytest.approx(0.01, rel=1e-2), name  # the first step of Adam is its rate
            continue
        left, _, right = torch.linalg.svd(gradients[name], full_matrices=False)
        orthogonal = left @ right  # the nearest orthogonal matrix, which Muon comes near in five products
        size = 0.01 * 0.2 * max(parameter.shape) ** 0.5
        assert torch.cosine_similarity(change.flatten(), orthogonal.flatten(), dim=0) > 0.95, name
        assert 0.6 < torch.linalg.svdvals(change / size).mean() < 1.2, name


def test_records_of_adamw_are_as_before():
    assert "kind" not in OptimizerSettings().model_dump()
    assert TrainingPlan(1, OptimizerSettings(kind="muon"), seed=0).record()["optimizer.kind"] == "muon"
