"""Heads on chosen layers: which layers words mean, and what a head computes of them."""

import math
from copy import deepcopy

import pytest
import torch
from pydantic import ValidationError

from korbert.errors import ModelError, SettingsError
from korbert.huggingface.exporting import export
from korbert.modeling import Encoder, FeatureModel, FeatureSettings, load_model, pack, save_model
from korbert.modeling.feature_settings import chosen_layers
from korbert.modeling.heads import initialize
from tests.korbert.tiny import tiny_config

ONE = {"last": 12, "first": 0, "second-to-last": 11, "0": 0, "12": 12}
CONFIG = tiny_config(vocab_size=500, hidden_size=16, num_hidden_layers=5, num_attention_heads=2)


def test_layer_names_are_resolved():
    for layers, places, mix in (
        *((name, (place,), "one") for name, place in ONE.items()),
        ("sum of last four", (9, 10, 11, 12), "sum"),
        ("concat of last four", (9, 10, 11, 12), "concat"),
        ("sum of last 2", (11, 12), "sum"),
        ("sum of all", tuple(range(1, 13)), "sum"),
        ("weighted sum", tuple(range(1, 13)), "weighted sum"),
        ("weighted sum of last four", (9, 10, 11, 12), "weighted sum"),
    ):
        assert chosen_layers(layers, 12) == (places, mix)


@pytest.mark.parametrize("layers", ["", "lst", "-1", "sum of last 0", "mean of all", 2.5])
def test_unknown_layers_are_refused(layers):
    with pytest.raises(ValidationError):
        FeatureSettings(layers=layers)
    for too_many in ("13", "sum of last 13"):
        with pytest.raises(SettingsError, match=f"layers '{too_many}': the encoder has "):
            chosen_layers(too_many, 12)


def test_settings_as_one_text():
    assert FeatureSettings.model_validate("last") == FeatureSettings()
    chosen = FeatureSettings(layers="sum of all", head="bilstm", width=32)
    assert FeatureSettings.model_validate("sum of all, bilstm, 32") == chosen
    assert FeatureSettings(layers=3).layers == "3"
    with pytest.raises(ValidationError):
        FeatureSettings.model_validate("last, linear, 32, float16, more")


def _encoder():
    encoder = Encoder(CONFIG)
    initialize(encoder, CONFIG.model_copy(update={"initializer_range": 0.3}), torch.Generator().manual_seed(1))
    return encoder.eval()


def _batch():
    ids = torch.randint(5, 500, (3, 9), generator=torch.Generator().manual_seed(2))
    mask = torch.arange(9) < torch.tensor([9, 4, 1])[:, None]
    return {"input_ids": ids, "attention_mask": mask.long()}


@pytest.mark.parametrize("head", ["linear", "mlp", "bilstm"])
@pytest.mark.parametrize("pooling", ["mean", "first", None])
@pytest.mark.parametrize("layers", ["last", "sum of last four", "concat of last four", "weighted sum"])
def test_feature_models_are_saved_and_ignore_padding(tmp_path, tiny_tokenizer, head, pooling, layers):
    config = CONFIG.model_copy(update={"vocab_size": tiny_tokenizer.vocab_size})
    model = FeatureModel(config, 4, pooling, layers, head, 8, torch.Generator().manual_seed(1)).eval()
    with torch.no_grad():
        scores = model(**_batch())
        assert scores.shape == ((3, 4) if pooling else (3, 9, 4))
        alone = model(_batch()["input_ids"][1:2, :4])
    assert torch.allclose(scores[1:2] if pooling else scores[1:2, :4], alone, atol=1e-5)
    save_model(tmp_path / "model", model, tiny_tokenizer)
    loaded = deepcopy(load_model(tmp_path / "model")[0])  # where a mapped file lies decides how some processors round
    with torch.no_grad():
        assert torch.equal(loaded(**_batch()), scores)
        pack(tmp_path / "model", tmp_path / "packed")
        assert torch.allclose(load_model(tmp_path / "packed")[0](**_batch()), scores, atol=0.01)
    with pytest.raises(ModelError, match="a head on features, which nothing in transformers"):
        export(tmp_path / "model", tmp_path / "exported")


@pytest.mark.parametrize(("pooling", "pooled"), [
    (None, lambda outputs: outputs), ("first", lambda outputs: outputs[0]), ("mean", lambda outputs: outputs.mean(0)),
])  # fmt: skip
def test_a_bilstm_reads_the_pieces_of_each_row(pooling, pooled):
    """As torch.nn.LSTM on each row alone, without padding."""
    model = FeatureModel(CONFIG, 2, pooling, "concat of last four", "bilstm", 8, encoder=_encoder()).eval()
    model.standardize(torch.randn(4, 16), torch.rand(4, 16) + 0.5)
    batch = _batch()
    with torch.no_grad():
        layers = (model.encoder.all_layers(**batch)[2:] - model.mean[:, None, None]) / model.deviation[:, None, None]
        for number, length in enumerate(batch["attention_mask"].sum(1).tolist()):
            outputs, _ = model.lstm(torch.cat(list(layers[:, number, :length]), dim=-1))
            scores = model(**batch)[number] if pooling else model(**batch)[number, :length]
            torch.testing.assert_close(scores, model.classifier(pooled(outputs)), atol=1e-5, rtol=1e-5)


def test_a_linear_head_mixes_pooled_and_standardized_layers():
    encoder, batch = _encoder(), _batch()
    with torch.no_grad():
        layers, mask = encoder.all_layers(**batch)[2:], batch["attention_mask"]
        means = (layers * mask[:, :, None]).sum(2) / mask.sum(1)[:, None]
        for name, mixed in (
            ("sum of last four", lambda layers: layers.sum(0)),
            ("concat of last four", lambda layers: torch.cat(list(layers), 1)),
            ("weighted sum of last four", lambda layers: 3 * (layers[0] + 2 * layers[3]) / 3),
        ):
            model = FeatureModel(CONFIG, 2, "mean", name, encoder=encoder).eval()
            mean, deviation = torch.randn(4, 16), torch.rand(4, 16) + 0.5
            deviation[0, 0] = 0.0
            model.standardize(mean, deviation)
            if name.startswith("weighted"):
                model.weights.copy_(torch.tensor([0.0, -99.0, -99.0, math.log(2)]))
                model.factor.fill_(3.0)
            normed = (means - mean[:, None]) / deviation.masked_fill(deviation == 0, 1.0)[:, None]
            assert torch.allclose(model(**batch), model.classifier(mixed(normed)), atol=1e-4)
    # The encoder learns nothing.
    model = FeatureModel(CONFIG, 2, "mean", "weighted sum", "mlp", 8, encoder=_encoder())
    model(**_batch()).sum().backward()
    learned = {name for name, weight in model.named_parameters() if weight.grad is not None}
    assert learned == {"weights", "factor", "dense.weight", "dense.bias", "classifier.weight", "classifier.bias"}
