"""Fine-tuning with the embeddings of the training pieces alone gives what fine-tuning all of them gives."""

import copy

import numpy as np
import pytest
import torch

from korbert.modeling import ClassificationModel
from korbert.tasks.finetuning.seen import SeenEmbedding, only_seen_embeddings
from korbert.training.examples import Examples
from korbert.training.scoring import model_inputs
from tests.korbert.tiny import tiny_config

CONFIG = tiny_config(vocab_size=900, embedding_size=16)


def model_of(seed=0):
    return ClassificationModel(CONFIG, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def examples():
    rng = np.random.default_rng(1)
    rows = [(rng.integers(5, 400, 12), np.zeros(12)) for _ in range(32)]
    return Examples.of_rows(rows, rng.integers(0, 2, 32), pad_id=0)


def train(model, examples):
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-2, weight_decay=0.0)
    for step in range(20):
        batch = examples.batch(np.arange(8) + 8 * (step % 4))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(**model_inputs(batch)), batch["labels"]).backward()
        optimizer.step()
    return model.eval()


def test_the_same_weights_come_out(examples):
    plain, narrow = model_of(), model_of()
    train(plain, examples)
    with only_seen_embeddings(narrow, examples):
        assert len(narrow.encoder.token_weight) == len({0, *examples.input_ids.tolist()}) < 400
        train(narrow, examples)
    assert narrow.encoder.token_weight.shape == (900, 16)
    torch.testing.assert_close(dict(narrow.state_dict()), dict(plain.state_dict()), rtol=1e-5, atol=1e-6)
    assert narrow.encoder.token_weight.requires_grad


def test_pieces_of_validation_texts_keep_their_vectors(examples):
    model = model_of()
    before = model.encoder.token_weight.detach().clone()
    other = {"input_ids": torch.tensor([[5, 700, 899, 6]])}
    with torch.no_grad(), only_seen_embeddings(model, examples):
        inside = model.eval()(**other)
        model.encoder.embeddings.token.weight += 1
    after = model.encoder.token_weight.detach()
    seen = sorted({0, *examples.input_ids.tolist()})
    assert after[[700, 899]].equal(before[[700, 899]])
    torch.testing.assert_close(after[seen], before[seen] + 1)
    torch.testing.assert_close(inside, model_of().eval()(**other))
    with pytest.raises(IndexError):  # a piece that no batch has is not trained by mistake
        SeenEmbedding(torch.nn.Embedding(10, 4), torch.tensor([2, 5])).train()(torch.tensor([2, 3]))


def test_names_and_files_are_those_of_the_rest(examples):
    """Also after a failure, and of a frozen embedding."""
    model, whole, tokens = model_of(), model_of(), "encoder.embeddings.token.weight"
    with only_seen_embeddings(model, examples):
        assert list(model.state_dict()) == list(whole.state_dict())
        assert [name for name, _ in model.named_parameters()] == [name for name, _ in whole.named_parameters()]
        state = copy.deepcopy(model.state_dict())
        assert state[tokens].equal(whole.encoder.token_weight)
        state[tokens] += 1
        model.load_state_dict(state)
    assert model.encoder.token_weight.equal(whole.encoder.token_weight + 1)
    with pytest.raises(ZeroDivisionError), only_seen_embeddings(model, examples):
        raise ZeroDivisionError
    assert len(model.encoder.token_weight) == 900
    model.encoder.embeddings.token.weight.requires_grad_(False)
    with only_seen_embeddings(model, examples):
        assert len(model.encoder.token_weight) == 900
