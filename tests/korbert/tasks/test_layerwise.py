"""Which parameters learn, and how fast."""

import pytest
import torch

from korbert.errors import SettingsError
from korbert.modeling import ClassificationModel
from korbert.tasks.finetuning.layerwise import freeze, keep_layers, layerwise_factors
from tests.korbert.tiny import tiny_config


def test_layers_that_share_their_weights_are_refused():
    model = ClassificationModel(tiny_config(num_hidden_layers=4, layer_groups=2))
    message = "^the layers of this encoder share their weights: leave layer_decay and frozen_layers out, or freeze all"
    for refused, given in ((freeze, 1), (layerwise_factors, 0.9)):
        with pytest.raises(SettingsError, match=message):
            refused(model, given)
    freeze(model, -1)
    assert not any(parameter.requires_grad for parameter in model.encoder.parameters())


def test_an_overlap_embedding_learns_as_a_head_does():
    """It is new when a pretrained encoder is fine-tuned."""
    model = ClassificationModel(tiny_config(num_hidden_layers=4, overlap_embedding=True))
    slower = " ".join(layerwise_factors(model, 0.5))
    assert ("token" in slower, "overlap" in slower) == (True, False)
    freeze(model, 2)
    assert model.encoder.embeddings.overlap.weight.requires_grad
    assert not model.encoder.embeddings.token.weight.requires_grad


def test_piece_weights_learn_as_the_final_norm_does():
    """They are new when a pretrained encoder learns vectors."""
    model = ClassificationModel(tiny_config(num_hidden_layers=4, piece_weights=True))
    assert not {"encoder.piece_weight.weight", "encoder.final_norm.weight"} & layerwise_factors(model, 0.5).keys()
    freeze(model, 2)
    assert model.encoder.piece_weight.weight.requires_grad
    assert model.encoder.piece_weight.bias.requires_grad


def test_the_first_layers_alone_compute_what_they_did_inside_the_whole():
    model = ClassificationModel(tiny_config(num_hidden_layers=4, global_attn_every_n_layers=3))
    ids = torch.randint(5, 90, (2, 9))
    whole = model.encoder.final_norm(model.encoder.all_layers(ids, only=[2])[0])
    keep_layers(model, 2)
    assert model.config.num_hidden_layers == 2
    torch.testing.assert_close(model.encoder(ids), whole)
    with pytest.raises(SettingsError, match="num_hidden_layers 2: the encoder has 2 layers: take fewer"):
        keep_layers(model, 2)
    with pytest.raises(SettingsError, match="the layers of this encoder share their weights"):
        keep_layers(ClassificationModel(tiny_config(num_hidden_layers=4, layer_groups=2)), 2)
