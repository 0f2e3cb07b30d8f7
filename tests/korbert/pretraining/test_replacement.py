"""Replaced token detection: what the generator draws, what the detector is told, what is shared and saved."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from korbert.modeling import DetectionModel, PretrainingModel
from korbert.modeling.rows import Rows
from korbert.pretraining import evaluate
from korbert.pretraining.objective_settings import ReplacementSettings
from korbert.pretraining.objectives.replacement import ReplacementLoss, ReplacementModel, generator_config
from tests.korbert.pretraining.conftest import rows_of
from tests.korbert.tiny import tiny_config

SETTINGS = ReplacementSettings(generator_share=0.5)
COUNTS = np.ones(2000, dtype=np.int64)


def config_of(architecture):
    return tiny_config(
        architecture,
        vocab_size=2000,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


@pytest.fixture(params=["bert", "modern"])
def model(request):
    return ReplacementModel(config_of(request.param), SETTINGS, torch.Generator().manual_seed(0))


def batch_of(corpus):
    return rows_of(corpus.files, objectives=("rtd",)).batch(0, 12)


def test_the_generator_is_narrow_and_shares_the_embeddings_of_pieces(model):
    values = model.generator.config.model_dump()
    half = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    assert values == values | half | {"num_hidden_layers": 2, "embedding_size": 32}
    assert model.generator.encoder.token_weight is model.encoder.token_weight
    names = [name for name, _ in model.named_parameters() if "token.weight" in name]
    assert names == ["encoder.embeddings.token.weight"]
    twin = copy.deepcopy(model)
    assert twin.generator.encoder.token_weight is twin.encoder.token_weight is not model.encoder.token_weight


def test_losses_by_hand(model, corpus):
    """Generator, replaced row, detector, one after the other, from the parts alone."""
    (batch,) = batch_of(corpus)
    loss = ReplacementLoss(SETTINGS)
    losses = loss(model, batch)
    inputs = Rows(batch["lengths"], torch.device("cpu")), batch["token_type_ids"], batch["boundaries"]
    hidden = model.generator.encoder.forward_flat(batch["input_ids"], *inputs, wanted=batch["label_places"])
    scores = model.generator.mlm_head(hidden)
    torch.testing.assert_close(losses["mlm_loss"], F.cross_entropy(scores, batch["labels"]))
    drawn = loss._sample_replacements(model.generator, hidden, batch)
    original = batch["input_ids"].clone()
    original[batch["label_places"]] = batch["labels"]
    shown = original.clone()
    shown[batch["label_places"]] = drawn
    scores = model.scores(model.encoder.forward_flat(shown, *inputs))
    expected = F.binary_cross_entropy_with_logits(scores, (shown != original).float())
    torch.testing.assert_close(losses["rtd_loss"], expected)
    torch.testing.assert_close(losses["loss"], losses["mlm_loss"] + 50 * losses["rtd_loss"])
    assert 0 < (shown != original).sum() <= len(drawn)


def test_replacements_follow_the_generators_distribution(model):
    """With lots spread evenly, each piece is drawn as often as the generator gives it a chance."""
    loss = ReplacementLoss(SETTINGS)
    with torch.no_grad():
        model.generator.mlm.bias[:5] += torch.tensor([9.0, 8.5, 8.0, 7.0, 6.0])
        hidden = torch.randn(1, model.generator.config.hidden_size).expand(2000, -1)
        lots = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
        drawn = loss._sample_replacements(model.generator, hidden, {"labels": torch.full((2000,), 7), "lots": lots})
        shares = model.generator.mlm_head(hidden[:1]).softmax(-1)[0]
    frequencies = torch.bincount(drawn, minlength=2000) / 2000
    assert (frequencies - shares).abs().max() < 2e-3


def test_the_generator_learns_nothing_from_the_detector(model, corpus):
    (batch,) = batch_of(corpus)
    losses = ReplacementLoss(SETTINGS)(model, batch)
    losses["rtd_loss"].backward(retain_graph=True)
    assert all(parameter.grad is None for parameter in model.generator.parameters())
    assert model.encoder.token_weight.grad is not None
    losses["mlm_loss"].backward()
    assert model.generator.encoder.layers[0].up.weight.grad is not None


def test_evaluation_counts_pieces_and_labels(corpus):
    (batch,) = batch_of(corpus)
    model = ReplacementModel(config_of("modern"), SETTINGS, torch.Generator().manual_seed(0))
    figures = evaluate(model, [batch], COUNTS, ReplacementLoss(SETTINGS))
    assert figures["rtd_count"] == batch["pieces"]
    assert figures["mlm_count"] == len(batch["labels"])
    with torch.no_grad():
        losses = ReplacementLoss(SETTINGS)(model.eval(), batch)
    assert figures["mlm_loss"] == pytest.approx(losses["mlm_loss"].item(), rel=1e-4)


@torch.inference_mode()
def test_saved_detector_and_generator_score_as_in_training(model):
    detector, generator = model.detection_model(), model.generator_model()
    assert type(detector) is DetectionModel
    assert type(generator) is PretrainingModel
    ids = torch.randint(400, 2000, (2, 9))
    torch.testing.assert_close(detector.eval()(ids), model.eval().scores(model.encoder(ids)))
    torch.testing.assert_close(
        generator.eval()(ids)[0], model.generator.mlm_head(model.generator.encoder(ids)), rtol=1e-4, atol=1e-5
    )
    assert generator.config == generator_config(model.config, 0.5)
