import pytest
import torch

from korbert.training.muon import muon, orthogonalized
from korbert.training.settings import OptimizerSettings


def matrix(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(16, 16), (48, 16), (16, 40)])
def test_orthogonalized_keeps_singular_vectors_and_makes_values_about_1(shape):
    drawn = matrix(*shape)
    left, values, right = torch.linalg.svd(drawn, full_matrices=False)
    core = left.T @ orthogonalized(drawn) @ right.T
    assert ((core.diagonal() > 0.6) & (core.diagonal() < 1.3))[values > values.max() / 50].all()
    assert (core - core.diagonal().diag()).abs().max() < 1e-4


def trained(optimizer, parameters):
    for step in range(5):
        for number, parameter in enumerate(parameters):
            parameter.grad = matrix(*parameter.shape, seed=100 * step + number)
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


def test_steps_equal_pytorchs_muon_up_to_bf16():
    shapes = [(16, 16), (48, 16), (16, 40)]
    ours, theirs = ([torch.nn.Parameter(matrix(*shape)) for shape in shapes] for _ in range(2))
    groups = [{"params": ours, "lr": 0.02, "weight_decay": 0.5}]
    matrices = trained(muon(groups, OptimizerSettings(momentum=0.9), "fp32"), ours)
    other = torch.optim.Muon(theirs, 0.02, 0.5, 0.9, adjust_lr_fn="match_rms_adamw")
    for one, two, shape in zip(matrices, trained(other, theirs), shapes, strict=True):
        assert (one - two).norm() < 0.02 * (two - matrix(*shape)).norm()


@pytest.mark.parametrize(
    ("precision", "amx", "expected"), [("fp32", True, False), ("bf16", False, False), ("bf16", True, True)]
)
def test_pytorchs_muon_is_used_where_bf16_is_fast(monkeypatch, precision, amx, expected):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    groups = [{"params": [torch.nn.Parameter(matrix(3, 3))], "lr": 0.1, "weight_decay": 0.0}]
    assert (type(muon(groups, OptimizerSettings(), precision)) is torch.optim.Muon) is expected
