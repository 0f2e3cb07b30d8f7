import pytest
import torch
from torch import nn

from korbert.training.optimizers import RunningAverage


def run(decay, values):
    """A model of one weight that has these values, one an update."""
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(99.0)
    average = RunningAverage(model, decay)
    for done, value in enumerate(values, 1):
        model.weight.data.fill_(value)
        average.add(done)
    return model, average


def test_it_is_the_mean_at_first_and_decays_then():
    """With decay 0.75: the mean of four values, then a quarter of each new one. The start has no part in it."""
    _, average = run(0.75, [1.0, 2.0, 3.0, 4.0])
    assert average.state()["weight"].item() == pytest.approx(2.5)
    _, average = run(0.75, [1.0, 2.0, 3.0, 4.0, 10.0, 0.0])
    assert average.state()["weight"].item() == pytest.approx(0.75 * (0.75 * 2.5 + 0.25 * 10.0))


def test_it_stands_in_for_the_weights_and_they_come_back():
    model, average = run(0.5, [1.0, 3.0])
    weight = model.weight
    with average.in_place():
        assert (weight.item(), model(torch.ones(1)).item()) == (2.0, 2.0)
    assert (weight.item(), average.state()["weight"].item()) == (3.0, 2.0)
    assert model.weight is weight
    with pytest.raises(ZeroDivisionError), average.in_place():
        raise ZeroDivisionError
    assert weight.item() == 3.0


def test_tied_and_frozen_weights():
    model = nn.ModuleDict({"one": nn.Linear(2, 2, bias=False), "two": nn.Linear(2, 2), "three": nn.Linear(2, 2)})
    model["two"].weight = model["one"].weight
    model["three"].requires_grad_(False)
    average = RunningAverage(model, 0.9)
    assert average.state().keys() == {"one.weight", "two.bias"}
    average.exchange()
    assert model["two"].weight.data_ptr() == model["one"].weight.data_ptr()
