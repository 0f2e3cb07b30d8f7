import torch
from torch import nn

from korbert.training.optimizers import adamw, optimizer_state, restore_optimizer
from korbert.training.settings import OptimizerSettings


def stepped(model, optimizer, steps):
    for step in range(steps):
        inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(step))
        model(inputs).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def test_matrices_decay_and_vectors_do_not():
    model = network()
    model[0].weight.requires_grad_(False)
    decaying, others = adamw(model, OptimizerSettings(weight_decay=0.1)).param_groups
    assert [tuple(parameter.shape) for parameter in decaying["params"]] == [(2, 4)]
    assert sorted(tuple(parameter.shape) for parameter in others["params"]) == [(2,), (4,), (4,), (4,)]
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.1, 0.0)


def test_a_restored_optimizer_goes_on_as_the_first_would_have():
    straight = network()
    optimizer = adamw(straight, OptimizerSettings())
    stepped(straight, optimizer, 3)
    resumed = network()
    resumed.load_state_dict(straight.state_dict())
    other = adamw(resumed, OptimizerSettings())
    restore_optimizer(
        resumed, other, {name: value.clone() for name, value in optimizer_state(straight, optimizer).items()}
    )
    stepped(straight, optimizer, 2)
    stepped(resumed, other, 2)
    for one, two in zip(straight.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, two)
