"""Which parameters learn, and how fast."""

import pytest

from korbert.errors import SettingsError
from korbert.modeling import ClassificationModel, EncoderConfig
from korbert.tasks.finetuning.layerwise import decayed, freeze
from korbert.tasks.finetuning.lora import add_adapters

SIZES = {"hidden_size": 8, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 8}


def test_layers_that_share_their_weights_are_refused():
    model = ClassificationModel(EncoderConfig(vocab_size=50, layer_groups=2, **SIZES))
    message = "^the layers of this encoder share their weights: leave layer_decay and frozen_layers out, or freeze all"
    with pytest.raises(SettingsError, match=message):
        freeze(model, 1)
    with pytest.raises(SettingsError, match=message):
        decayed(model, 0.9)
    freeze(model, -1)
    assert not any(parameter.requires_grad for parameter in model.encoder.parameters())


def test_an_overlap_embedding_learns_as_a_head_does():
    """It is new when a pretrained encoder is fine-tuned."""
    config = EncoderConfig(vocab_size=50, overlap_embedding=True, **SIZES)
    model = ClassificationModel(config)
    patterns = [group.pattern for group in decayed(model, 0.5)]
    assert any("token" in pattern for pattern in patterns)
    assert not any("overlap" in pattern for pattern in patterns)
    freeze(model, 2)
    assert model.encoder.embeddings.overlap.weight.requires_grad
    assert not model.encoder.embeddings.token.weight.requires_grad
    adapted = ClassificationModel(config)
    add_adapters(adapted, 2, seed=0)
    learning = {name for name, parameter in adapted.encoder.named_parameters() if parameter.requires_grad}
    assert "embeddings.overlap.weight" in learning
    assert all("lora" in name for name in learning - {"embeddings.overlap.weight"})
