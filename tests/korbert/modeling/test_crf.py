"""The linear-chain CRF against an enumeration of all tag sequences."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from korbert.modeling import CrfModel, EncoderConfig

LABELS = ("O", "B-X", "I-X")
LENGTHS = (3, 1, 4, 0, 2)


@pytest.fixture
def model():
    config = EncoderConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8
    )
    model = CrfModel(config, LABELS, (1, 2), torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    for weights in (model.classifier.weight, model.classifier.bias, model.transitions, model.starts):
        torch.nn.init.normal_(weights, generator=generator)
    model.first[2] = False
    model.follows[0, 2] = False
    return model.double()


def sequences(model, scores, bar=-30.0):
    """All tag sequences of a text, and the score of each."""
    starts = torch.where(model.first, model.starts, bar)
    pairs = torch.where(model.follows, model.transitions, bar)
    every = list(product(range(len(LABELS)), repeat=len(scores)))
    sums = []
    for tags in every:
        own = sum(scores[place, tag] for place, tag in enumerate(tags))
        sums.append(starts[tags[0]] + own + sum(pairs[pair] for pair in pairwise(tags)))
    return every, torch.stack(sums)


def test_the_loss_and_its_gradient_are_those_of_an_enumeration(model):
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(sum(LENGTHS), 3, dtype=torch.float64, generator=generator, requires_grad=True)
    targets = torch.tensor([0, 1, 2, 1, 0, 0, 1, 2, 1, 1])
    weights = (scores, model.transitions, model.starts)
    found = torch.autograd.grad(model.loss(scores, targets, LENGTHS), weights)
    expected = 0.0
    at = 0
    for length in LENGTHS:
        if length:
            every, sums = sequences(model, scores[at : at + length])
            expected = expected + sums.logsumexp(0) - sums[every.index(tuple(targets[at : at + length].tolist()))]
        at += length
    assert model.loss(scores, targets, LENGTHS).item() == pytest.approx(expected.item())
    for one, other in zip(found, torch.autograd.grad(expected, weights), strict=True):
        assert torch.allclose(one, other)


def test_the_loss_of_shares_is_the_expected_one(model):
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(sum(LENGTHS), 3, dtype=torch.float64, generator=generator)
    shares = torch.rand(sum(LENGTHS), 3, dtype=torch.float64, generator=generator).softmax(dim=1)
    expected = 0.0
    at = 0
    for length in filter(None, LENGTHS):
        every, sums = sequences(model, scores[at : at + length])
        for tags, score in zip(every, sums, strict=True):
            share = torch.stack([shares[at + place, tag] for place, tag in enumerate(tags)]).prod()
            expected = expected + share * (sums.logsumexp(0) - score)
        at += length
    targets = torch.zeros(sum(LENGTHS), dtype=torch.int64)
    assert model.loss(scores, targets, LENGTHS, shares).item() == pytest.approx(expected.item())
    certain = torch.nn.functional.one_hot(targets, 3)
    assert model.loss(scores, targets, LENGTHS, certain).item() == pytest.approx(
        model.loss(scores, targets, LENGTHS).item()
    )


def test_the_path_is_the_best_legal_one_and_its_probabilities_are_marginals(model):
    rng = np.random.default_rng(3)
    scores = 2 * rng.normal(size=(sum(LENGTHS), 3))
    path, probabilities = model.decode(scores, LENGTHS)
    at = 0
    for length in filter(None, LENGTHS):
        own = torch.from_numpy(scores[at : at + length])
        every, sums = sequences(model, own, -float("inf"))
        tags = tuple(path[at : at + length].tolist())
        assert tags == every[int(sums.argmax())]
        shares = sums.detach().softmax(0)
        marginals = [
            sum(float(share) for other, share in zip(every, shares, strict=True) if other[place] == tag)
            for place, tag in enumerate(tags)
        ]
        assert probabilities[at : at + length] == pytest.approx(marginals)
        at += length


def test_a_text_that_begins_in_the_middle_of_a_span_has_a_loss(model):
    loss = model.loss(torch.zeros(2, 3, dtype=torch.float64), torch.tensor([2, 2]), [2])
    assert 20 < loss.item() < 60


def test_pieces_without_a_tag_are_left_out(model):
    ids = torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    targets = torch.tensor([[-100, 1, 2, -100], [-100, 0, -100, -100]])
    scores = model(ids, mask)
    assert scores.shape == (2, 4, 3)
    units = torch.stack([scores[0, 1], scores[0, 2], scores[1, 1]])
    expected = model.loss(units, torch.tensor([1, 2, 0]), [2, 1])
    assert model(ids, mask, targets=targets).item() == pytest.approx(expected.item())
