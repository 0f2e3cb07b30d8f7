import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.pretraining.objectives import vocabulary
from korbert.pretraining.objectives.vocabulary import Negatives, full_loss, sampled_loss

ENTRIES, WIDTH = 60, 8


def made_up(rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(rows, WIDTH, generator=generator, requires_grad=True)
    weight = torch.randn(ENTRIES, WIDTH, generator=generator, requires_grad=True)
    bias = torch.randn(ENTRIES, generator=generator, requires_grad=True)
    return vectors, weight, bias, torch.randint(ENTRIES, (rows,), generator=generator)


def by_torch(vectors, weight, bias, labels):
    return F.cross_entropy(F.linear(vectors, weight, bias), labels, reduction="sum")


def sampled(vectors, weight, bias, labels, negatives, log_expected):
    entries = F.embedding(torch.cat([labels, negatives]), weight)
    return sampled_loss(vectors, entries, bias, labels, negatives, log_expected)


def assert_same_loss_and_gradients(ours, wanted, given_):
    torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=1e-5)
    slopes = (torch.autograd.grad(3 * loss, given_) for loss in (ours, wanted))
    torch.testing.assert_close(*slopes, atol=1e-4, rtol=1e-4)


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(0, 20), at_once=st.integers(1, 9), seed=st.integers(0, 99))
def test_the_full_loss_in_parts_is_that_of_torch(rows, at_once, seed):
    *given_, labels = made_up(rows, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "_ROWS_AT_ONCE", at_once)
        ours = full_loss(*given_, labels)
    assert_same_loss_and_gradients(ours, by_torch(*given_, labels), given_)


def test_the_full_loss_in_bf16_is_about_the_same():
    *given_, labels = made_up(40)
    wanted = by_torch(*given_, labels)
    with torch.autocast("cpu", torch.bfloat16):
        ours = full_loss(*given_, labels)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, wanted, rtol=0.01, atol=0.1)
    slopes = zip(torch.autograd.grad(ours, given_), torch.autograd.grad(wanted, given_), strict=True)
    assert all(F.cosine_similarity(one.flatten(), other.flatten(), 0) > 0.999 for one, other in slopes)


def test_a_sample_of_every_entry_is_the_full_loss():
    *given_, labels = made_up(30)
    ours = sampled(*given_, labels, torch.arange(ENTRIES), torch.zeros(ENTRIES))
    assert_same_loss_and_gradients(ours, by_torch(*given_, labels), given_)


def test_the_estimate_of_z_is_right_on_average():
    """Over many samples the mean of the estimated Z is Z: what the loss calls exp(loss + score of the label)."""
    *given_, labels = made_up(1)
    sampler, rng = Negatives(np.random.default_rng(1).integers(0, 30, ENTRIES), 12), np.random.default_rng(2)
    scores = F.linear(*given_)
    estimates = []
    for _ in range(4_000):
        drawn = sampler.draw(rng)
        loss = sampled(*given_, labels, drawn["negatives"], drawn["log_expected"])
        estimates.append(math.exp(loss.item() + scores[0, labels[0]].item()))
    error = np.std(estimates) / math.sqrt(len(estimates))
    assert abs(np.mean(estimates) - scores.exp().sum().item()) < 4 * error
    assert error < 0.05 * np.mean(estimates)


def test_negatives_are_drawn_in_proportion_to_their_counts():
    counts = np.array([0, 3, 96, 1])
    sampler, rng = Negatives(counts, 10), np.random.default_rng(0)
    times = np.zeros(4)
    for _ in range(3_000):
        drawn = sampler.draw(rng)
        expected = 10 * (counts + 1) / (counts + 1).sum()
        entries = drawn["negatives"].numpy()
        times[entries] += expected[entries] / np.exp(drawn["log_expected"].numpy())  # how often it was drawn
        assert 2 in entries  # nine strata lie within its share
    assert times / times.sum() == pytest.approx((counts + 1) / (counts + 1).sum(), rel=0.1)
