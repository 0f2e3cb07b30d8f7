"""Counts of pretraining models on encoders of transformers, against built ones and against our own formulas."""

import pytest
import torch
from foreign_folders import CONFIGS

from korbert.modeling import EncoderConfig, PretrainingModel, arithmetic
from korbert.modeling.counting import activation_numbers, flop_a_piece, parameters
from korbert.modeling.foreign import CLASSES, new_config

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
STEP = {"length": 24, "label_share": 1.0, "scored": 500, "pieces_a_step": 96}


@pytest.mark.parametrize("model_type", CLASSES)
def test_parameters_are_those_of_the_built_model(model_type: str) -> None:
    config = new_config({"model_type": model_type, **CONFIGS[model_type]}, 500)
    counted = parameters(config)
    assert sum(counted.values()) == sum(weight.numel() for weight in PretrainingModel(config).parameters())
    assert counted["token embedding"] == 500 * config.embedding_width
    work = flop_a_piece(config, **STEP)
    assert work["encoder"].backward == 2 * work["encoder"].forward
    assert work["encoder"].forward > 2 * 12 * 16 * 16  # the matrices of a layer at least
    assert activation_numbers(config, 24) > 10 * 16


def test_their_bert_has_the_counts_of_ours() -> None:
    """All pieces are predicted, so that our last layer computes all, too."""
    sizes = {**SIZES, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    theirs = new_config({"model_type": "bert", **sizes}, 500)
    ours = EncoderConfig(architecture="bert", vocab_size=500, **sizes)
    assert parameters(ours) == arithmetic.parameters(ours)
    assert sum(parameters(theirs).values()) == sum(parameters(ours).values())
    found, expected = flop_a_piece(theirs, **STEP), arithmetic.flop_a_piece(ours, **STEP)
    linear, attention = expected.pop("encoder, linear"), expected.pop("encoder, attention")
    assert found.pop("encoder").forward == linear.forward + attention.forward
    expected.pop("embedding")
    assert found == expected
    assert activation_numbers(theirs, 24) == pytest.approx(activation_numbers(ours, 24), rel=0.35)


def test_counting_draws_nothing_from_the_global_generator() -> None:
    config = new_config({"model_type": "electra", **SIZES}, 500)
    before = torch.get_rng_state()
    flop_a_piece(config, **{**STEP, "length": 17})
    assert torch.equal(torch.get_rng_state(), before)
