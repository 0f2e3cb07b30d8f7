"""A model that goes on from another one: its weights, and rows for new words that begin as the mean of their pieces."""

import numpy as np
import pytest
import torch

from korbert.errors import ModelError
from korbert.modeling import EncoderConfig, PretrainingModel, QuestionAnsweringModel, save_model
from korbert.modeling.files.growing import copy_vectors, copy_weights, grow_vocabulary
from korbert.tokenization import AnalyzerOptions, Tokenizer
from korbert.tokenization.extending import extend_tokenizer
from tests.korbert.tiny import same_weights, tiny_config

WORDS = ("삐까뻔쩍체", "갓생러")
IDS = torch.tensor([[2, 400, 401, 402, 3]])


def config(tokenizer, **changes):
    return tiny_config(vocab_size=tokenizer.vocab_size, max_position_embeddings=512, **changes)


def drawn(config, seed=1):
    model = PretrainingModel(config, torch.Generator().manual_seed(seed))
    torch.nn.init.normal_(model.mlm.bias, generator=torch.Generator().manual_seed(seed))  # as after some training
    return model.eval()


BERT = {"architecture": "bert"}
SHAPES = [{}, BERT, BERT | {"embedding_size": 8}, BERT | {"layer_groups": 1}]


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def source(request, tiny_tokenizer, tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("source"), drawn(config(tiny_tokenizer, **request.param))
    save_model(folder, model, tiny_tokenizer)
    return folder, model


def test_all_weights_are_taken(source, tiny_tokenizer):
    folder, base = source
    model = drawn(base.config.model_copy(update={"hidden_dropout_prob": 0.3, "initializer_range": 0.1}), seed=2)
    copy_weights(model, tiny_tokenizer, folder)
    assert model.config.hidden_dropout_prob == 0.3
    assert same_weights(model, base)
    named = base.config.model_copy(update={"embedding_size": base.config.embedding_width})
    copy_weights(drawn(named), tiny_tokenizer, folder)


def test_new_words_start_as_the_mean_of_their_pieces(source, tiny_tokenizer):
    folder, base = source
    tokenizer = extend_tokenizer(tiny_tokenizer, WORDS, AnalyzerOptions())
    size, pieces = tiny_tokenizer.vocab_size, [list(tiny_tokenizer.ids_of(word)) for word in WORDS]
    assert min(map(len, pieces)) > 1
    model = drawn(base.config.model_copy(update={"vocab_size": tokenizer.vocab_size}), seed=2)
    copy_weights(model, tokenizer, folder)
    table, before = model.encoder.token_weight, base.encoder.token_weight
    assert torch.equal(table[:size], before)
    for row, ids in enumerate(pieces, start=size):
        torch.testing.assert_close(table[row], before[ids].mean(0))
        torch.testing.assert_close(model.mlm.bias[row], sum(base.mlm.bias[id] for id in ids) / len(ids))

    # So that they score the mean of their pieces, and the others what they did.
    with torch.no_grad():
        (own, pairs), (expected, same) = model(IDS), base(IDS)
    torch.testing.assert_close(own[..., :size], expected)
    torch.testing.assert_close(pairs, same)
    for row, ids in enumerate(pieces, start=size):
        torch.testing.assert_close(own[..., row], expected[..., ids].mean(-1))


def test_grown_tables_keep_their_width():
    """An embedding may be narrower than the encoder. Rows beyond the tokenizer's entries make room for new ones."""
    names = ("encoder.embeddings.token.weight", "mlm.bias")
    weights = {names[0]: torch.arange(15.0).view(5, 3), names[1]: torch.arange(5.0), "other": torch.ones(5, 7)}
    got = grow_vocabulary(weights, names, 4, [(0, 2), (3, 3, 1)])
    expected = torch.tensor([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [3, 4, 5], [7, 8, 9.0]])
    assert torch.equal(got["encoder.embeddings.token.weight"], expected)
    torch.testing.assert_close(got["mlm.bias"], torch.tensor([0, 1, 2, 3, 1, 7 / 3]))
    assert got["other"] is weights["other"]
    assert grow_vocabulary(weights, names, 5, [])["mlm.bias"].tolist() == weights["mlm.bias"].tolist()


def test_another_encoder_is_refused(source, tiny_tokenizer):
    for changes, message in (
        ({"hidden_size": 64}, "its encoder differs: hidden_size: 64 in the recipe, 32 in the model"),
        ({"embedding_size": 12}, "embedding_size: 12 in the recipe, "),
        ({"num_hidden_layers": 1, "layer_groups": None}, "num_hidden_layers: 1 in the recipe, 2 in the model"),
        ({"intermediate_size": 64, "layer_norm_eps": 1e-3}, "64 in the recipe, 48 in the model; layer_norm_eps: 0"),
    ):
        folder, base = source
        other = base.config.model_dump() | {"embedding_size": base.config.embedding_width} | changes
        with pytest.raises(ModelError, match=message):
            copy_weights(drawn(EncoderConfig.parse(other)), tiny_tokenizer, folder)


def test_added_layers_of_modern_change_no_vector_at_first_and_its_maximum_length_may_differ(source, tiny_tokenizer):
    folder, base = source
    longer = drawn(base.config.model_copy(update={"max_position_embeddings": 1024}))
    deeper = drawn(base.config.model_copy(update={"num_hidden_layers": 4}), seed=2)
    if base.config.architecture == "bert":
        for model, said in (
            (deeper, "num_hidden_layers: 4 in the recipe, 2 in the model"),
            (longer, "max_position_embeddings: 1024 in the recipe, 512 in the model"),
        ):
            with pytest.raises(ModelError, match=said):
                copy_weights(model, tiny_tokenizer, folder)
        return
    copy_weights(longer, tiny_tokenizer, folder)
    copy_weights(deeper, tiny_tokenizer, folder)
    with torch.no_grad():
        assert all(map(torch.equal, deeper(IDS), base(IDS)))

    deeper(IDS)[0].sum().backward()  # the zeros are a start, not an end
    for layer in deeper.encoder.layers:
        assert layer.down.weight.grad.any()
        assert layer.attention.output.weight.grad.any()

    shared = drawn(base.config.model_copy(update={"num_hidden_layers": 4, "layer_groups": 2}))
    with pytest.raises(ModelError, match="num_hidden_layers: 4 in the recipe, 2 in the model; layer_groups: 2 "):
        copy_weights(shared, tiny_tokenizer, folder)


def kept_and_not_lost(name, model, without, tokenizer, folder):
    """A model that goes on from one with an embedding has it as it was; one without it is refused."""
    save_model(folder, model, tokenizer)
    again = drawn(model.config, seed=3)
    copy_weights(again, tokenizer, folder)
    weights = [getattr(one.encoder.embeddings, name).weight for one in (again, model)]
    assert torch.equal(*weights)
    with pytest.raises(ModelError, match=f"{name}_embedding: False in the recipe, True in the model"):
        copy_weights(drawn(without), tokenizer, folder)


def test_an_added_boundary_embedding_changes_no_vector_at_first(source, tiny_tokenizer, tmp_path):
    folder, base = source
    marked = base.config.model_copy(update={"boundary_embedding": True})
    model = drawn(marked, seed=2)
    copy_weights(model, tiny_tokenizer, folder)
    boundaries = torch.tensor([[0, 3, 1, 2, 0]])
    with torch.no_grad():
        assert all(map(torch.equal, model(IDS, boundaries=boundaries), base(IDS)))
    torch.nn.init.ones_(model.encoder.embeddings.boundary.weight[3])
    with torch.no_grad():
        assert not torch.equal(model(IDS, boundaries=boundaries)[0], base(IDS)[0])

    kept_and_not_lost("boundary", model, base.config, tiny_tokenizer, tmp_path / "marked")


def test_an_overlap_embedding_may_be_added_but_not_lost(tiny_tokenizer, tmp_path):
    plain, marked = (config(tiny_tokenizer, overlap_embedding=given) for given in (False, True))
    save_model(tmp_path / "plain", drawn(plain), tiny_tokenizer)
    model = drawn(marked, seed=2)
    before = model.encoder.embeddings.overlap.weight.detach().clone()
    copy_weights(model, tiny_tokenizer, tmp_path / "plain")
    after, tokens = model.encoder.embeddings.overlap.weight, model.encoder.token_weight
    torch.testing.assert_close(after / after.norm(), before / before.norm())
    torch.testing.assert_close(after.norm(), tokens.norm(dim=1).mean())

    kept_and_not_lost("overlap", model, plain, tiny_tokenizer, tmp_path / "marked")


def test_another_tokenizer_and_another_kind_of_model_are_refused(source, tiny_tokenizer, tmp_path):
    folder, base = source
    other = Tokenizer(*tiny_tokenizer.parts._replace(options=AnalyzerOptions(typos="basic")))
    message = rf"tokenizer {tiny_tokenizer.digest[:12]}; the one of vocab, {other.digest[:12]}, is neither the same nor"
    with pytest.raises(ModelError, match=message + r" an extension of it \(typos: 'basic', not 'none'\): set vocab"):
        copy_weights(drawn(base.config), other, folder)
    save_model(tmp_path, QuestionAnsweringModel(base.config), tiny_tokenizer)
    with pytest.raises(ModelError, match="a question-answering model, without pretraining heads: name a pretrained"):
        copy_weights(drawn(base.config), tiny_tokenizer, tmp_path)


@pytest.mark.parametrize("width", [8, 12, 20])
def test_vectors_keep_their_angles_and_get_the_norm_of_the_replaced_ones(width):
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(30, 12)) @ rng.normal(size=(12, 12))).astype(np.float32)
    embeddings = torch.nn.Parameter(0.02 * torch.randn(40, width, generator=torch.Generator().manual_seed(0)))
    before, ids = embeddings.detach().clone(), np.arange(5, 35)
    copy_vectors(embeddings, ids, vectors, seed=0)
    taken, length = embeddings.detach(), before[5:35].norm(dim=1).mean()
    assert torch.equal(taken[:5], before[:5])
    assert torch.equal(taken[35:], before[35:])
    assert taken[5:35].norm(dim=1).mean().item() == pytest.approx(length.item(), rel=1e-5)
    base, own = torch.from_numpy(vectors), taken[5:35]
    if width >= 12:
        scale = (own @ own.T).trace() / (base @ base.T).trace()
        assert torch.allclose(own @ own.T, scale * (base @ base.T), atol=1e-6)
    else:  # the strongest axes: as PCA without centring has them
        values, owned = torch.linalg.svdvals(base)[:width], torch.linalg.svdvals(own)
        assert (owned / owned[0]).tolist() == pytest.approx((values / values[0]).tolist(), abs=1e-4)
