import json
import typing
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

from korbert.errors import SettingsError
from korbert.modeling import PretrainingModel
from korbert.training import Checkpointing, OptimizerSettings, TrainingOutput, TrainingPlan, fit
from korbert.training.muon import muon, orthogonalized
from korbert.training.optimizers import Optimizers, parameter_groups
from korbert.training.settings import OptimizerKind, ScheduleKind
from tests.korbert.tiny import same_weights, tiny_config

KINDS, SCHEDULES = typing.get_args(OptimizerKind), typing.get_args(ScheduleKind)
GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
GROUPS = (
    {"pattern": "embedding.*", "rate_factor": 5.0, "weight_decay": 0.0},
    {"pattern": "classifier.*", "kind": "adamw", "rate_factor": 0.5},
)


class Network(nn.Module):
    """An embedding, layers, a norm and a head that shares the embedding's weights."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(30, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 8)])
        self.norm = nn.LayerNorm(8)
        self.classifier = nn.Linear(8, 8)

    def forward(self, ids):
        vectors = self.embedding(ids)
        for layer in self.layers:
            vectors = vectors + layer(vectors).tanh()
        return self.classifier(self.norm(vectors)) @ self.embedding.weight.T


def batches(step):
    return [{"ids": torch.randint(0, 30, (6, 5), generator=torch.Generator().manual_seed(step))}]


def loss(model, batch):
    return {"loss": F.cross_entropy(model(batch["ids"]).flatten(0, 1), (batch["ids"].flatten() + 1) % 30)}


def trained(folder, settings, *, steps=10, end_at=None):
    """A model after its run, of which checkpoints are made every 4 steps. end_at: the batch that interrupts it."""

    def until(step):
        if step == end_at:
            raise KeyboardInterrupt
        return batches(step)

    model = Network()
    fit(
        model,
        until,
        loss,
        TrainingPlan(steps, settings, seed=3, precision="fp32", log_every=2, evaluate_every=3),
        device=torch.device("cpu"),
        output=TrainingOutput(Checkpointing(folder, every_steps=4), metrics=folder / "metrics.jsonl"),
        evaluate=lambda model, done: {"weights": float(sum(p.sum() for p in model.parameters()))},
    )
    return model


@pytest.mark.parametrize(("kind", "schedule"), [*product(KINDS, SCHEDULES)])
def test_stopped_and_resumed_bit_for_bit(tmp_path, kind, schedule):
    settings = OptimizerSettings(kind=kind, schedule=schedule, learning_rate=0.02, groups=GROUPS)
    straight = trained(tmp_path / "straight", settings)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped", settings, end_at=6)
    assert [path.name for path in (tmp_path / "stopped").glob("step-*")] == ["step-00000004"]

    assert same_weights(straight, trained(tmp_path / "stopped", settings))
    for file in ("step-00000010/state.safetensors", "metrics.jsonl"):
        assert (tmp_path / "straight" / file).read_bytes() == (tmp_path / "stopped" / file).read_bytes()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
@pytest.mark.parametrize("kind", KINDS)
def test_restored_optimizers_make_the_same_steps(device, kind):
    settings = OptimizerSettings(kind=kind, groups=GROUPS)
    precision = "bf16" if device == "cuda" else "fp32"
    one, two = Network().to(device), Network().to(device)
    first, second = (Optimizers(model, settings, precision) for model in (one, two))
    stepped(one, first, 3)
    two.load_state_dict(one.state_dict())
    second.restore({name: value.cpu().clone() for name, value in first.state().items()})
    stepped(one, first, 2)
    stepped(two, second, 2)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def stepped(model, optimizers, steps):
    for step in range(steps):
        for parameter in model.parameters():
            drawn = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(step))
            parameter.grad = drawn.to(parameter.device)
        optimizers.step()


def test_the_checkpoint_holds_all_state_by_name(tmp_path):
    keys = {"adamw": {"step", "exp_avg", "exp_avg_sq"}, "muon": {"momentum_buffer"}}
    for kind in KINDS:
        trained(tmp_path / kind, OptimizerSettings(kind=kind, groups=GROUPS))
        state = load_file(tmp_path / kind / "step-00000010/state.safetensors")
        expected = set()
        for name, _ in Network().named_parameters():
            own = kind if not (kind == "muon" and name not in ("layers.0.weight", "layers.2.weight")) else "adamw"
            expected |= {f"model/{name}"} | {f"optimizer/{name}/{key}" for key in keys[own]}
        assert state.keys() == expected


def test_every_group_follows_the_schedule_from_its_own_peak(tmp_path):
    trained(tmp_path, OptimizerSettings(kind="muon", learning_rate=0.01, warmup_share=0.2, groups=GROUPS))
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    logged = [line for line in lines if line["kind"] == "train"]
    peaks = {"learning_rate": 0.01, "learning_rate/embedding.*": 0.05, "learning_rate/classifier.*": 0.005}
    assert list(logged[0]) == ["kind", "step", "pieces", "loss", *peaks, "grad_norm"]
    shares = [0.5, 1.0, 7 / 8, 5 / 8, 3 / 8, 1 / 8]  # of steps 1, 2, 4, 6, 8 and 10
    for name, peak in peaks.items():
        assert [line[name] for line in logged] == pytest.approx([peak * share for share in shares])


def test_set_rates_are_the_rates_of_the_update():
    torch.manual_seed(0)
    model = nn.ModuleDict({"one": nn.Linear(3, 3, bias=False), "two": nn.Linear(3, 3, bias=False)})
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    settings = OptimizerSettings(learning_rate=0.1, weight_decay=0.0, groups=[{"pattern": "two.*", "rate_factor": 3}])
    optimizers = Optimizers(model, settings, "fp32")
    optimizers.set_rates(0.5)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizers.step()
    assert all(parameter.grad is None for parameter in model.parameters())
    # the first step of Adam is its rate
    for name, rate in (("one.weight", 0.05), ("two.weight", 0.15)):
        torch.testing.assert_close(before[name] - model.get_parameter(name), torch.full((3, 3), rate))


@pytest.fixture(scope="module", params=["bert", "modern"])
def model(request):
    return PretrainingModel(tiny_config(request.param))


def grouped(model, **changes):
    """(kind, name) -> (peak, weight decay, pattern)."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    settings = OptimizerSettings(**{"learning_rate": 0.01, "weight_decay": 0.1, **changes})
    return {
        names[parameter]: (kind, group["peak"], group["weight_decay"], group["pattern"])
        for kind, groups in parameter_groups(model, settings).items()
        for group in groups
        for parameter in group["params"]
    }


def test_matrices_decay_and_vectors_do_not(model):
    expected = {
        name: ("adamw", 0.01, 0.1 if parameter.ndim == 2 else 0.0, None) for name, parameter in model.named_parameters()
    }
    assert grouped(model, kind="adamw") == expected


def test_muon_takes_the_matrices_of_the_layers_alone(model):
    by_name = grouped(model, kind="muon")
    assert by_name.keys() == {name for name, _ in model.named_parameters()}
    parts = ("attention.qkv", "attention.output", "up", "down")
    matrices = {f"encoder.layers.{layer}.{part}.weight" for layer in (0, 1) for part in parts}
    assert {name for name, (kind, *_) in by_name.items() if kind == "muon"} == matrices
    assert {kind for kind, *_ in by_name.values()} == {"muon", "adamw"}


def test_the_first_group_whose_pattern_matches_holds(model):
    token, first, last = "encoder.embeddings.token.*", "encoder.layers.1.*", "encoder.*"
    groups = [
        {"pattern": token, "rate_factor": 5.0, "weight_decay": 0.0},
        {"pattern": first, "kind": "adamw"},
        {"pattern": last, "rate_factor": 0.5},
    ]
    by_name = grouped(model, kind="muon", groups=groups)
    assert by_name["encoder.embeddings.token.weight"] == ("adamw", 0.05, 0.0, token)
    assert by_name["encoder.layers.1.up.weight"] == ("adamw", 0.01, 0.1, first)
    assert by_name["encoder.layers.1.feed_forward_norm.weight"] == ("adamw", 0.01, 0.0, first)
    assert by_name["encoder.layers.0.up.weight"] == ("muon", 0.005, 0.1, last)
    assert by_name["encoder.embeddings.norm.weight"] == ("adamw", 0.005, 0.0, last)
    assert by_name["mlm.transform.dense.weight"] == ("adamw", 0.01, 0.1, None)


def test_frozen_parameters_are_in_no_group():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[0].weight.requires_grad_(False)
    assert grouped(model, groups=[{"pattern": "0.weight"}]).keys() == {"0.bias", "1.weight", "1.bias"}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([{"pattern": "encoder.*"}, {"pattern": "encoder.embedings.token.*"}],
         r"optimizer\.groups\.1: .* matches no parameter; the nearest of \d+ are encoder\.embeddings\.token\."),
        ([{"pattern": "encoder.*"}, {"pattern": "encoder.layers.*"}],
         r"groups\.1: .* matches only parameters that groups before it match: remove it or move it up"),
        ([{"pattern": "*embeddings.token.*", "kind": "muon"}],
         r"groups\.0: muon can train no .* \(encoder\.embeddings\.token\.weight is one of 1\): choose another kind"),
    ],
)  # fmt: skip
def test_a_group_that_changes_nothing_is_refused(model, groups, message):
    with pytest.raises(SettingsError, match=message):
        grouped(model, groups=groups)


def matrix(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(16, 16), (48, 16), (16, 40)])
def test_orthogonalized_keeps_singular_vectors_and_makes_values_about_1(shape):
    drawn = matrix(*shape)
    left, values, right = torch.linalg.svd(drawn, full_matrices=False)
    core = left.T @ orthogonalized(drawn) @ right.T
    assert ((core.diagonal() > 0.6) & (core.diagonal() < 1.3))[values > values.max() / 50].all()
    assert (core - core.diagonal().diag()).abs().max() < 1e-4


def after_five_steps(optimizer, parameters):
    for step in range(5):
        for number, parameter in enumerate(parameters):
            parameter.grad = matrix(*parameter.shape, seed=100 * step + number)
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


def test_steps_equal_pytorchs_muon_up_to_bf16():
    shapes = [(16, 16), (48, 16), (16, 40)]
    ours, theirs = ([torch.nn.Parameter(matrix(*shape)) for shape in shapes] for _ in range(2))
    groups = [{"params": ours, "lr": 0.02, "weight_decay": 0.5}]
    matrices = after_five_steps(muon(groups, OptimizerSettings(momentum=0.9), "fp32"), ours)
    other = torch.optim.Muon(theirs, 0.02, 0.5, 0.9, adjust_lr_fn="match_rms_adamw")
    for one, two, shape in zip(matrices, after_five_steps(other, theirs), shapes, strict=True):
        assert (one - two).norm() < 0.02 * (two - matrix(*shape)).norm()


@pytest.mark.parametrize(
    ("precision", "amx", "expected"), [("fp32", True, False), ("bf16", False, False), ("bf16", True, True)]
)
def test_pytorchs_muon_is_used_where_bf16_is_fast(monkeypatch, precision, amx, expected):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    groups = [{"params": [torch.nn.Parameter(matrix(3, 3))], "lr": 0.1, "weight_decay": 0.0}]
    assert (type(muon(groups, OptimizerSettings(), precision)) is torch.optim.Muon) is expected
