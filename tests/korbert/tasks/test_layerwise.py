"""Layers that cannot be told apart are refused."""

import pytest

from korbert.errors import SettingsError
from korbert.modeling import ClassificationModel, EncoderConfig
from korbert.tasks.layerwise import decayed, freeze


def test_layers_that_share_their_weights_are_refused() -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 8}
    model = ClassificationModel(EncoderConfig(vocab_size=50, layer_groups=2, **sizes))
    message = "^the layers of this encoder share their weights: leave layer_decay and frozen_layers out, or freeze all"
    with pytest.raises(SettingsError, match=message):
        freeze(model, 1)
    with pytest.raises(SettingsError, match=message):
        decayed(model, 0.9)
    freeze(model, -1)
    assert not any(parameter.requires_grad for parameter in model.encoder.parameters())
