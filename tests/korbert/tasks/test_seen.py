"""Fine-tuning with the embeddings of the training pieces alone gives what fine-tuning all of them gives."""

import copy

import pytest
import torch

from korbert.modeling import ClassificationModel, EncoderConfig
from korbert.tasks.seen import SeenEmbedding, learning_seen, seen_pieces

CONFIG = EncoderConfig(
    vocab_size=900, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, embedding_size=16
)


def model_of(seed=0):
    return ClassificationModel(CONFIG, generator=torch.Generator().manual_seed(seed))


def batches_of(number=4):
    generator = torch.Generator().manual_seed(1)
    return [{"input_ids": torch.randint(5, 400, (8, 12), generator=generator)} for _ in range(number)]


def train(model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    model.train()
    for step, batch in enumerate(batches * 5):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(**batch), torch.arange(8) % 2 ^ (step % 4 == 0)).backward()
        optimizer.step()
    return model.eval()


def test_the_same_weights_come_out():
    batches = batches_of()
    plain, narrow = model_of(), model_of()
    train(plain, batches)
    with learning_seen(narrow, batches):
        assert len(narrow.encoder.token_weight) == len(seen_pieces(batches)) < 400
        train(narrow, batches)
    assert narrow.encoder.token_weight.shape == (900, 16)
    for name, expected in plain.state_dict().items():
        torch.testing.assert_close(narrow.state_dict()[name], expected, rtol=1e-5, atol=1e-6, msg=name)
    assert narrow.encoder.token_weight.requires_grad


def test_pieces_of_validation_texts_keep_their_vectors():
    batches = batches_of()
    model = model_of()
    before = model.encoder.token_weight.detach().clone()
    other = {"input_ids": torch.tensor([[5, 700, 899, 6]])}
    with torch.no_grad(), learning_seen(model, batches):
        inside = model.eval()(**other)
        model.encoder.embeddings.token.weight += 1
    after = model.encoder.token_weight.detach()
    seen = seen_pieces(batches)
    assert after[[700, 899]].equal(before[[700, 899]])
    torch.testing.assert_close(after[seen], before[seen] + 1)
    torch.testing.assert_close(inside, model_of().eval()(**other))


def test_a_piece_that_no_batch_has_is_not_trained_by_mistake():
    embedding = SeenEmbedding(torch.nn.Embedding(10, 4), torch.tensor([2, 5]))
    with pytest.raises(IndexError):
        embedding.train()(torch.tensor([2, 3]))


def test_names_and_files_are_those_of_the_rest():
    model = model_of()
    names = list(model.state_dict())
    with learning_seen(model, batches_of()):
        assert list(model.state_dict()) == names
        assert [name for name, _ in model.named_parameters()] == [name for name, _ in model_of().named_parameters()]
        state = copy.deepcopy(model.state_dict())
        assert state["encoder.embeddings.token.weight"].equal(model_of().encoder.token_weight)
        state["encoder.embeddings.token.weight"] += 1
        model.load_state_dict(state)
    assert model.encoder.token_weight.equal(model_of().encoder.token_weight + 1)


def test_an_embedding_that_does_not_learn_stays():
    model = model_of()
    model.encoder.embeddings.token.weight.requires_grad_(False)
    with learning_seen(model, batches_of()):
        assert len(model.encoder.token_weight) == 900


def test_a_failure_leaves_the_whole():
    model = model_of()
    with pytest.raises(ZeroDivisionError), learning_seen(model, batches_of()):
        raise ZeroDivisionError
    assert len(model.encoder.token_weight) == 900
