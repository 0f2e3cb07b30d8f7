"""Vectors of texts: of every kind of model, layer and pooling, against computations written apart."""

import math

import numpy as np
import pytest
import torch

import korbert
from korbert.errors import ModelError, SettingsError
from korbert.huggingface import import_folder
from korbert.model import Model
from korbert.modeling import load_model, models
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.embedding import Embedding
from korbert.vectors import POOLINGS

TEXTS = ["아버지가 방에 들어가신다.", "", "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!"]
TEXTS += ["서울", "ㅋㅋㅋ " * 40]


def layers_of(encoder, text):
    """(L + 1, T, D) of one text alone, and whether each piece is special."""
    row = encoder.tokenizer.encode(text, max_length=encoder.max_length)
    with torch.inference_mode():
        return encoder.network.encoder.all_layers(torch.tensor([row.input_ids]))[:, 0].numpy(), row


def test_each_layer_and_pooling(encoder):
    for text in TEXTS:
        layers, row = layers_of(encoder, text)
        inner = layers[:, 1:-1] if len(row) > 2 else layers
        for layer in range(-4, 4):
            for special, own in ((True, layers[layer]), (False, inner[layer])):
                expected = {"mean": own.mean(0), "max": own.max(0), "first": own[0]}
                expected["mean-max"] = np.concatenate([expected["mean"], expected["max"]])
                for pooling, vector in expected.items():
                    found = encoder.embed(text, layer=layer, pooling=pooling, special_tokens=special, normalize=False)
                    np.testing.assert_allclose(found, vector, atol=1e-5)
        last = layers[[-2, -1]]
        for mix, mixed in {"sum": last.sum(0), "mean": last.mean(0), "concat": np.concatenate(last, axis=1)}.items():
            found = encoder.embed(text, layer=(-2, -1), mix=mix, normalize=False)
            np.testing.assert_allclose(found, mixed.mean(0), atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_batches_do_not_matter_and_order_is_kept(encoder, pooling, monkeypatch):
    asked = {"pooling": pooling, "layer": [-1, 1], "mix": "concat"}
    alone = np.stack([encoder.embed(text, **asked) for text in TEXTS])
    width = encoder.width(encoder.vector_settings(**asked))
    assert (alone.dtype, alone.shape[1]) == (np.float32, width)
    monkeypatch.setattr("korbert.embedder.TEXTS_AT_ONCE", 2)
    for size in (1, 2, 64):
        np.testing.assert_allclose(encoder.embed(iter(TEXTS), size, **asked), alone, atol=1e-5)
    np.testing.assert_allclose(encoder.embed(TEXTS[::-1], 2, **asked), alone[::-1], atol=1e-5)
    assert encoder.embed([], **asked).shape == (0, alone.shape[1])
    # The vector of a single piece is that piece.
    (piece,) = encoder.parts("영화", "piece").vectors
    if pooling != "mean-max":
        found = encoder.embed("영화", pooling=pooling, special_tokens=False, normalize=False)
        np.testing.assert_allclose(found, piece, atol=1e-5)


def test_vectors_are_normalized_and_cut_and_no_numbers_are_named(encoder):
    whole = encoder.embed(TEXTS, normalize=False)
    np.testing.assert_allclose(encoder.embed(TEXTS, size=5, normalize=False), whole[:, :5], atol=1e-6)
    unit = encoder.embed(TEXTS, size=5)
    np.testing.assert_allclose(unit, whole[:, :5] / np.linalg.norm(whole[:, :5], axis=1, keepdims=True), atol=1e-5)
    assert encoder.similarity(TEXTS[0], TEXTS[2], size=5) == pytest.approx(float(unit[0] @ unit[2]), abs=1e-5)
    encoder.network.encoder.embeddings.norm.weight.data.fill_(math.nan)
    for asked in (encoder.embed, encoder.parts):
        with pytest.raises(ModelError, match="the model: its vectors are not finite"):
            asked("가", layer=1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"layer": 4}, r"layer 4: take one from 0 \(the embeddings\) to 3; -1 is the last one"),
        ({"layer": [-1, 3]}, r"layer \[-1, 3\]: name each layer once"),
        ({"layer": "last"}, "layer: Input should be a valid tuple"),
        ({"layer": []}, "layer: "),
        ({"pooling": "meen"}, "pooling: Input should be 'mean', 'first', 'max'"),
        ({"size": 17}, "size 17: the vectors have 16 numbers"),
        ({"size": 0}, "size: Input should be greater than or equal to 1"),
        ({"poling": "mean"}, "poling: Extra inputs are not permitted"),
    ],
)
def test_settings_that_are_refused(encoder, asked, said):
    with pytest.raises(SettingsError, match=said):
        encoder.embed("가", **asked)


def test_every_kind_of_model_gives_the_same_vectors(config, tiny_tokenizer, tmp_path, encoder):
    """Their encoders have the same weights."""
    expected = encoder.embed(TEXTS, layer=-2, pooling="max")
    number = KINDS["regression"].kind_class(metrics=("pearson",), max_length=32, mean=0.0, deviation=1.0)
    reading = KINDS["question-answering"].kind_class(metrics=("f1",))
    spans = {"metrics": ("accuracy",), "max_length": 32, "tags": ("O", "B-PS"), "units": "characters", "stride": 8}
    tagging = KINDS["token-classification"].kind_class(**spans)
    for can, network, *kind in (
        (("fill", "embed"), models.PretrainingModel(config)),
        (("answer", "embed"), reading.model(config), reading),
        (("tag", "embed"), tagging.model(config), tagging),
        (("predict", "embed"), number.model(config), number),
        (("embed",), models.EmbeddingModel(config)),
        (("embed",), models.DetectionModel(config)),
    ):
        network.encoder.load_state_dict(encoder.network.encoder.state_dict())
        model = Model(network, tiny_tokenizer, *kind)
        model.save(tmp_path / "model", overwrite=True)
        loaded = korbert.load(tmp_path / "model", "cpu")
        assert (loaded.can, loaded.kind) == (can, model.kind)
        np.testing.assert_allclose(loaded.embed(TEXTS, layer=-2, pooling="max"), expected, atol=1e-6)
        assert loaded.digest == encoder.digest


def test_a_model_of_embeddings_has_defaults_of_its_own(config, tiny_tokenizer, tmp_path):
    kind = Embedding(metrics=("spearman",), max_length=5, learns="texts", pooling="first")
    network = kind.model(config, torch.Generator().manual_seed(1)).eval()
    Model(network, tiny_tokenizer, kind).save(tmp_path / "model")
    model = korbert.load(tmp_path / "model", "cpu")
    assert (model.kind, model.max_length) == (kind, 5)
    rows = [torch.tensor([tiny_tokenizer.encode(text, max_length=5).input_ids]) for text in TEXTS]
    with torch.inference_mode():
        expected = torch.nn.functional.normalize(torch.cat([network(row) for row in rows]))
        plain = torch.cat([network.encoder(row).mean(dim=1) for row in rows])
    vectors = model.embed(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(model.embed(TEXTS, pooling="mean", normalize=False), plain, atol=1e-5)

    assert model.similarity(TEXTS[0], TEXTS[2]) == pytest.approx(float(vectors[0] @ vectors[2]), abs=1e-5)
    np.testing.assert_allclose(model.similarity(TEXTS[:2], TEXTS), vectors[:2] @ vectors.T, atol=1e-5)
    assert model.similarity(TEXTS[0], TEXTS, pooling="mean").shape == (len(TEXTS),)
    with pytest.raises(SettingsError, match=r"texts\[1\] is int 3: give only strings"):
        model.embed(["가", 3])


@pytest.mark.parametrize("model_type", ["roberta", "modernbert", "funnel"])
def test_foreign_encoders(foreign, tmp_path, model_type):
    import_folder(foreign(model_type), tmp_path / "model")
    found = korbert.load(tmp_path / "model", "cpu")
    assert found.can == ("embed",)
    model, tokenizer = load_model(tmp_path / "model")
    for text in (TEXTS[0], TEXTS[2]):
        row = tokenizer.encode(text)
        with torch.inference_mode():
            hidden = model.encoder(torch.tensor([row.input_ids]))[0]
        np.testing.assert_allclose(found.embed(text, normalize=False), hidden.mean(0), atol=1e-5)
    if model_type == "funnel":
        with pytest.raises(ModelError, match="layers differ in pieces: take the last one"):
            found.embed(TEXTS, layer=1)
    else:
        assert found.embed(TEXTS, layer=[0, -1], mix="concat").shape[1] == 2 * model.config.hidden_size
