"""Losses of text embeddings, against computations written apart."""

import math

import pytest
import torch
from foreign_folders import CONFIGS

from korbert.modeling.transformers_config import CLASSES, adapted_config, class_of
from korbert.tasks.embedding import contrastive_loss, ranking_loss
from korbert.tasks.kinds.embedding import Embedding
from tests.korbert.tiny import tiny_config


def drawn(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(a, b):
    return float((a * b).sum()) / math.sqrt(float((a * a).sum()) * float((b * b).sum()))


@pytest.mark.parametrize("far", [0, 3])
def test_contrastive_loss(far):
    """The mean over the anchors of -log of the positive's share of all exp(cosine / temperature)."""
    anchors, positives, negatives = drawn(1, 4, 6), drawn(2, 4, 6), drawn(3, far, 6)
    losses = []
    for place in range(4):
        shares = [math.exp(cosine(anchors[place], other) / 0.05) for other in (*positives, *negatives)]
        losses.append(-math.log(shares[place] / sum(shares)))
    same = torch.eye(4, dtype=torch.bool)
    given, mean = (anchors, positives, negatives), sum(losses) / 4
    assert float(contrastive_loss(*given, same, 0.05)) == pytest.approx(mean, rel=1e-9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = contrastive_loss(*(vectors.float() for vectors in given), same, 0.05)
    assert float(found) == pytest.approx(mean, rel=1e-5)


def test_positives_of_the_same_text_are_no_negatives():
    anchors, positives, none = drawn(1, 3, 6), drawn(2, 3, 6), drawn(3, 0, 6)
    anchors[2] = anchors[0]
    same = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 0, 1]]).bool()
    losses = []
    for place, others in ((0, (0, 1)), (1, (0, 1, 2)), (2, (1, 2))):
        shares = {other: math.exp(cosine(anchors[place], positives[other])) for other in others}
        losses.append(-math.log(shares[place] / sum(shares.values())))
    assert float(contrastive_loss(anchors, positives, none, same, 1.0)) == pytest.approx(sum(losses) / 3, rel=1e-9)


def test_ranking_loss():
    """A pair of rows counts where the one with the higher score has the lower cosine; equal scores do not."""
    first, second, scores = drawn(1, 5, 6), drawn(2, 5, 6), torch.tensor([0.0, 2.0, 2.0, 5.0, 1.0])
    found = [cosine(a, b) for a, b in zip(first, second, strict=True)]
    total = 1.0
    for high in range(5):
        for low in range(5):
            if scores[high] > scores[low]:
                total += math.exp((found[low] - found[high]) / 0.05)
    assert float(ranking_loss(first, second, scores, 0.05)) == pytest.approx(math.log(total), rel=1e-9)
    assert float(ranking_loss(first, second, torch.ones(5), 0.05)) == 0


@pytest.mark.parametrize("model_type", ["ours", *CLASSES])
def test_two_draws_of_dropout_differ(model_type, tiny_tokenizer):
    """Also where the encoder was made without dropout."""
    config = tiny_config(vocab_size=500)
    if model_type != "ours":
        full = class_of(model_type).config_class(vocab_size=500, **CONFIGS[model_type]).to_dict()
        none = {name: 0.0 if "dropout" in name and value else value for name, value in full.items()}
        config = adapted_config(none, vocab_size=500)
    task = Embedding(metrics=("spearman",), max_length=32, learns="texts")
    model = task.model(config, torch.Generator().manual_seed(1))
    ids = torch.arange(100, 106).repeat(2, 1)
    with torch.no_grad():
        one, two = model.train()(ids)
        assert float((one - two).abs().max()) > 1e-3
        one, two = model.eval()(ids)
        assert float((one - two).abs().max()) < 1e-5
