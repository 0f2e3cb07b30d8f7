"""Attention as `transformers` has it, between pieces, morphemes and eojeols."""

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.errors import ModelError
from korbert.huggingface import export
from korbert.huggingface.importing import load_encoder, read_folder
from korbert.modeling import EncoderConfig, EncoderModel, PretrainingModel, save_model
from korbert.modeling.adapters.transformers_config import CLASSES
from korbert.tokenization.transformers_tokenizer import TransformersTokenizer
from korbert.vectors.attention import UNITS, attention

TEXT, PAIR = "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!", "이걸 왜 또 봤을까 👍🏻"
LONG = " ".join([TEXT] * 3)


def model_of(tokenizer, **others):
    sizes = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 16}
    config = EncoderConfig(vocab_size=tokenizer.vocab_size, **sizes, **others)
    model = PretrainingModel(config, torch.Generator().manual_seed(3)).eval()
    generator = torch.Generator().manual_seed(5)
    for layer in model.encoder.layers:  # far from even weights
        layer.attention.qkv.weight.data.add_(0.4 * torch.randn(layer.attention.qkv.weight.shape, generator=generator))
    return model


def check_weights(found, folder, *, typed):
    """They are those that transformers gives of a model in this folder."""
    theirs = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    batch = {"input_ids": torch.tensor([found.encoding.input_ids])}
    if typed:
        batch["token_type_ids"] = torch.tensor([found.encoding.token_type_ids])
    with torch.inference_mode():
        expected = torch.stack(theirs(**batch, output_attentions=True).attentions)[:, 0]
    np.testing.assert_allclose(found.weights, expected.numpy(), atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def model(tiny_tokenizer):
    return model_of(tiny_tokenizer)


BERT = {"architecture": "bert"}
SHAPES = [BERT, BERT | {"layer_groups": 1, "embedding_size": 8}, {"local_attention": 8}]


@pytest.mark.parametrize("others", [*SHAPES, {"global_attn_every_n_layers": 1}])
@pytest.mark.parametrize("pair", [None, PAIR], ids=["text", "pair"])
def test_weights_are_those_that_transformers_gives_of_the_export(tiny_tokenizer, tmp_path, others, pair):
    model = model_of(tiny_tokenizer, **others)
    found = attention(model, tiny_tokenizer, LONG, pair)
    assert len(found.encoding) > 60  # far beyond the windows of local layers
    save_model(tmp_path / "model", model, tiny_tokenizer)
    export(tmp_path / "model", tmp_path / "exported")
    check_weights(found, tmp_path / "exported", typed=BERT.items() <= others.items())
    assert found.weights.std() > 0.01


@pytest.mark.parametrize("model_type", [name for name in CLASSES if name not in ("funnel", "longformer")])
def test_weights_of_foreign_encoders_are_their_own(foreign, model_type):
    folder = foreign(model_type)
    encoder = load_encoder(folder, read_folder(folder))
    usual = encoder.model.config._attn_implementation
    tokenizer = TransformersTokenizer.of_folder(folder)
    found = attention(EncoderModel(encoder.config, encoder=encoder), tokenizer, "학교에 간다", "친구를 만난다")
    assert encoder.model.config._attn_implementation == usual
    assert found.queries is None
    check_weights(found, folder, typed=bool(encoder.config.type_vocab_size))
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    assert found.labels("eojeol")[1:3] == ["학교에", "간다"]


@pytest.mark.parametrize("model_type", ["funnel", "longformer"])
def test_encoders_without_weights_of_pieces_on_pieces_are_refused(foreign, model_type):
    folder = foreign(model_type)
    encoder = load_encoder(folder, read_folder(folder))
    tokenizer = TransformersTokenizer.of_folder(folder)
    with pytest.raises(ModelError, match=f"{model_type}: it has no piece-to-piece attention weights"):
        attention(EncoderModel(encoder.config, encoder=encoder), tokenizer, "학교에 간다")


def test_queries_and_keys_make_the_weights(model, tiny_tokenizer):
    found = attention(model, tiny_tokenizer, TEXT, PAIR)
    assert not any(module._forward_pre_hooks for module in model.modules())  # the encoder is as it was
    scores = found.queries @ found.keys.swapaxes(-1, -2) / np.sqrt(found.keys.shape[-1])
    exponents = np.exp(scores - scores.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(found.weights, exponents / exponents.sum(axis=-1, keepdims=True), atol=1e-5)


def test_units_have_the_text_of_their_pieces_and_the_eojeols_of_the_tokenizer(model, tiny_tokenizer):
    found = attention(model, tiny_tokenizer, "이걸  봤다", "왜 👍🏻")
    assert found.labels("eojeol") == ["[CLS]", "이걸", "봤다", "[SEP]", "왜", "👍🏻", "[SEP]"]
    assert found.labels("morpheme")[1:4] == ["이거", "ᆯ", "보"]
    assert found.labels("morpheme")[-2] == "👍🏻"
    assert found.spans("eojeol") == [(0, 0), (0, 2), (4, 6), (0, 0), (0, 1), (2, 4), (0, 0)]
    assert found.groups("piece").tolist() == [*range(len(found.encoding))]
    found = attention(model, tiny_tokenizer, LONG)
    pieces = tiny_tokenizer.encode_pieces(LONG)
    begins = np.array(pieces.boundaries) >= 2
    assert found.groups("eojeol")[1:-1].tolist() == begins.cumsum().tolist()


@settings(max_examples=60)
@given(text=st.text("가나했걸 \n👍a.", max_size=24), pair=st.none() | st.text("나 봤다", max_size=12))
def test_units_are_numbered_in_order_and_rows_sum_to_one(model, tiny_tokenizer, text, pair):
    found = attention(model, tiny_tokenizer, text, pair)
    for unit in UNITS:
        groups = found.groups(unit)
        assert np.unique(groups).tolist() == [*range(groups.max() + 1)] == [*range(len(found.labels(unit)))]
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)


def test_long_texts_and_weights_that_are_not_finite_are_refused(tiny_tokenizer):
    model = model_of(tiny_tokenizer, max_position_embeddings=16)
    with pytest.raises(ModelError, match=r"the text has .* pieces, the model reads 16: shorten it"):
        attention(model, tiny_tokenizer, TEXT)
    model.encoder.layers[1].attention.qkv.weight.data.fill_(float("nan"))
    with pytest.raises(ModelError, match="attention weights are not finite"):
        attention(model, tiny_tokenizer, "학교")
