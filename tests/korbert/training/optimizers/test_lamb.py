import numpy as np
import pytest
import torch

from korbert.training.optimizers.lamb import lamb
from korbert.training.settings import OptimizerSettings

SETTINGS = OptimizerSettings(kind="lamb", beta1=0.8, beta2=0.9, epsilon=1e-3)


def stepped(start, gradients, rate, decay):
    """The parameter after each step."""
    parameter = torch.nn.Parameter(torch.tensor(start, dtype=torch.float32))
    optimizer = lamb([{"params": [parameter], "lr": rate, "weight_decay": decay}], SETTINGS, "fp32")
    after = []
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient, dtype=torch.float32)
        optimizer.step()
        after.append(parameter.detach().numpy().copy())
    return after


def by_the_paper(start, gradients, rate, decay, *, trust):
    """Algorithm 2 line by line, in float64."""
    x, m, v, after = np.array(start, np.float64), 0.0, 0.0, []
    for t, given in enumerate(gradients, 1):
        g = np.array(given, np.float64)
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g**2
        r = (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)
        u = r + decay * x
        x = x - rate * (np.linalg.norm(x) / np.linalg.norm(u) if trust else 1.0) * u
        after.append(x)
    return after


def test_a_step_by_hand():
    """Adam's first step is the gradient's sign, nearly: |x| = 5, |u| = sqrt 2, so each entry goes 0.1 x 5 / sqrt 2."""
    (after,) = stepped([[3.0, 4.0]], [[[20.0, -30.0]]], 0.1, 0.0)
    assert after[0] == pytest.approx([3 - 0.5 / 2**0.5, 4 + 0.5 / 2**0.5], abs=1e-4)


@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(4, 3), (5,)])
def test_many_steps_as_in_the_paper_and_vectors_as_adam(shape, decay):
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=shape), rng.normal(size=(6, *shape))
    decay = decay if len(shape) == 2 else 0.0
    expected = by_the_paper(start, gradients, 0.05, decay, trust=len(shape) == 2)
    for one, other in zip(stepped(start, gradients, 0.05, decay), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_vectors_are_updated_as_by_adamw_of_pytorch():
    rng = np.random.default_rng(1)
    start, gradients = rng.normal(size=7), rng.normal(size=(5, 7))
    theirs = torch.nn.Parameter(torch.tensor(start, dtype=torch.float32))
    adamw = torch.optim.AdamW([theirs], lr=0.05, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.0)
    for gradient in gradients:
        theirs.grad = torch.tensor(gradient, dtype=torch.float32)
        adamw.step()
    np.testing.assert_allclose(stepped(start, gradients, 0.05, 0.0)[-1], theirs.detach().numpy(), rtol=1e-5)


def test_a_matrix_of_zeros_and_a_gradient_of_zeros_give_numbers():
    moved, still = (
        stepped(np.zeros((2, 2)), [np.ones((2, 2))], 0.1, 0.1),
        stepped(np.ones((2, 2)), [np.zeros((2, 2))], 0.1, 0.0),
    )
    np.testing.assert_allclose(moved[0], -0.1, rtol=2e-3)  # a matrix of zeros has no length to go by: Adam's step
    np.testing.assert_array_equal(still[0], 1.0)
