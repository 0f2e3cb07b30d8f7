"""Losses of text embeddings, against computations written apart."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import entropy

from korbert.huggingface.importing import read_folder
from korbert.modeling.adapters.transformers_config import CLASSES, adapted_config
from korbert.tasks.embedding import contrastive_loss, distillation_loss, in_chunks, ranking_loss
from korbert.tasks.kinds.embedding import Embedding
from korbert.tasks.kinds.texts import near_batches
from korbert.tasks.passages import encode_passages
from korbert.vectors import to_unit_length
from tests.korbert.tiny import tiny_config


def drawn(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(a, b):
    return float((a * b).sum()) / math.sqrt(float((a * a).sum()) * float((b * b).sum()))


@pytest.mark.parametrize("far", [0, 3])
@pytest.mark.parametrize("also", [False, True])
def test_contrastive_loss(far, also):
    """The mean over the anchors of -log of the positive's share of all exp(cosine / temperature); with `also`,
    candidates that fit a text as well are no negatives of it."""
    anchors, candidates = drawn(1, 4, 6), drawn(2, 4 + far, 6)
    fits = torch.eye(4, 4 + far, dtype=torch.bool)
    fits[0, 2] = fits[1, 3] = also  # no negatives of these
    losses = []
    for place, own in enumerate(fits.tolist()):
        others = [other for other, fit in zip(candidates, own, strict=True) if not fit]
        shares = [math.exp(cosine(anchors[place], other) / 0.05) for other in (candidates[place], *others)]
        losses.append(-math.log(shares[0] / sum(shares)))
    assert float(contrastive_loss(anchors, candidates, fits, 0.05)) == pytest.approx(sum(losses) / 4, rel=1e-9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = contrastive_loss(anchors.float(), candidates.float(), fits, 0.05)
    assert float(found) == pytest.approx(sum(losses) / 4, rel=1e-5)


@pytest.mark.parametrize("width", [4, 6, 9])
def test_distillation_loss(width):
    """The mean over the texts of the divergence of their neighbours' probabilities; and of 1 - cosine, of the leading
    dimensions, unless the teacher is the wider one."""
    vectors, teacher = drawn(1, 5, 6), drawn(2, 5, width)
    divergences = []
    for place in range(5):
        others = [other for other in range(5) if other != place]
        ours, theirs = (
            softmax([cosine(side[place], side[other]) / 0.05 for other in others]) for side in (vectors, teacher)
        )
        divergences.append(entropy(theirs, ours))
    towards = (
        [1 - cosine(own[:width], other) for own, other in zip(vectors, teacher, strict=True)] if width < 9 else [0]
    )
    expected = np.mean(divergences) + np.mean(towards)
    assert float(distillation_loss(vectors, teacher, 0.05)) == pytest.approx(expected, rel=1e-9)


def test_chunks_change_neither_loss_nor_gradients(tiny_tokenizer):
    """Of pairs with negatives, and of single texts under dropout, which is drawn once for both passes of a chunk."""
    config = tiny_config(vocab_size=tiny_tokenizer.vocab_size, hidden_size=16)
    rows = [{"text": "영화가 좋다", "pair": "정말 좋은 영화였다", "negatives": ["비가 온다", "집에 간다"]},
            {"text": "비가 왔다", "pair": "어제는 비", "negatives": []},
            {"text": "비가 왔다", "pair": "비가 온다", "negatives": ["영화"]}]  # fmt: skip
    passages = [encode_passages(tiny_tokenizer, [row["text"], row["pair"], *row["negatives"]]) for row in rows]
    gradients = {}
    for size in (1, 16, 256):
        task = Embedding(metrics=("mrr",), max_length=32, learns="pairs", dropout=0.0, chunk_pieces=size, sizes=(4,))
        model = task.model(config, torch.Generator().manual_seed(1)).train()
        examples = task.prepare(rows, passages, tiny_tokenizer).examples
        loss = task.loss(model, examples.batch(np.arange(3)))["loss"]
        loss.backward()
        gradients[size] = [loss.detach(), *(weight.grad for weight in model.parameters())]
    for size in (1, 16):
        for one, whole in zip(gradients[size], gradients[256], strict=True):
            assert torch.allclose(one, whole, atol=1e-6)
    # Where both passes drew another dropout, the gradient would not be that of the loss.
    model = Embedding(metrics=("mrr",), max_length=32, learns="texts", dropout=0.3).model(config).train()
    batch = {"input_ids": torch.arange(100, 108).reshape(4, 2), "lengths": (2, 2, 2, 2)}
    torch.manual_seed(0)
    vectors = in_chunks(model, batch, 1)
    vectors.sum().backward()
    found = model.encoder.token_weight.grad.clone()
    model.zero_grad()
    torch.manual_seed(0)
    apart = torch.cat([model(row[None], lengths=(2,)) for row in batch["input_ids"]])
    apart.sum().backward()
    assert torch.equal(vectors, apart)
    assert torch.allclose(found, model.encoder.token_weight.grad, atol=1e-6)


def test_ranking_loss():
    """A pair of rows counts where the one with the higher score has the lower cosine; equal scores do not."""
    first, second, scores = drawn(1, 5, 6), drawn(2, 5, 6), torch.tensor([0.0, 2.0, 2.0, 5.0, 1.0])
    found = [cosine(a, b) for a, b in zip(first, second, strict=True)]
    pairs = [(low, high) for low in range(5) for high in range(5) if scores[high] > scores[low]]
    total = 1 + sum(math.exp((found[low] - found[high]) / 0.05) for low, high in pairs)
    assert float(ranking_loss(first, second, scores, 0.05)) == pytest.approx(math.log(total), rel=1e-9)
    assert float(ranking_loss(first, second, torch.ones(5), 0.05)) == 0


@pytest.mark.parametrize("model_type", ["ours", *CLASSES])
def test_two_draws_of_dropout_differ(model_type, foreign):
    """Also where the encoder was made without dropout."""
    config = tiny_config(vocab_size=500)
    if model_type != "ours":
        full = read_folder(foreign(model_type)).transformers
        none = {name: 0.0 if "dropout" in name and value else value for name, value in full.items()}
        config = adapted_config(none)
    task = Embedding(metrics=("spearman",), max_length=32, learns="texts")
    model = task.model(config, torch.Generator().manual_seed(1))
    ids = torch.arange(10, 16).repeat(2, 1)
    with torch.no_grad():
        assert float(model.train()(ids).diff(dim=0).abs().max()) > 1e-3
        assert float(model.eval()(ids).diff(dim=0).abs().max()) < 1e-5


@given(count=st.integers(1, 60), batch_size=st.integers(1, 9), seed=st.integers(0, 9))
def test_batches_of_near_texts_hold_every_row_once(count, batch_size, seed):
    vectors = np.random.default_rng(seed).normal(size=(count, 3)).round()  # with equal ones
    batches = near_batches(vectors, batch_size, np.random.default_rng(seed))
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    assert len(batches) == -(-count // batch_size)
    assert sum(len(batch) < batch_size for batch in batches) <= 1


def test_batches_of_near_texts_are_nearer_than_random_ones():
    vectors = to_unit_length(np.random.default_rng(0).normal(size=(2_000, 8)).astype(np.float32))

    def mean_cosine(batches):
        return np.mean([(vectors[batch] @ vectors[batch].T).mean() for batch in batches])

    near = near_batches(vectors, 50, np.random.default_rng(1))
    apart = np.random.default_rng(1).permutation(2_000).reshape(-1, 50)
    assert mean_cosine(near) > 0.3 > 0.05 > mean_cosine(apart)
