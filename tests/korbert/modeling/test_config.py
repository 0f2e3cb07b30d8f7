import pytest
from pydantic import ValidationError

from korbert.modeling.config import EncoderConfig

SIZES = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
SIZES |= {"vocab_size": 100}
EQUAL = "layer_groups {} does not divide 4 layers into equal groups of two or more: choose"


def test_defaults_are_those_of_the_architecture():
    bert = EncoderConfig(**SIZES, architecture="bert")
    modern = EncoderConfig(**SIZES | {"num_hidden_layers": 7})
    dropout = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    values = bert.model_dump()
    assert values == values | dropout | {"type_vocab_size": 2, "layer_norm_eps": 1e-12}
    values = modern.model_dump()
    none = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "type_vocab_size": 0}
    assert values == values | none | {"architecture": "modern", "layer_norm_eps": 1e-5}
    assert modern.layers_per_set == 1
    assert EncoderConfig(**SIZES, layer_groups=2).layers_per_set == 2
    values = EncoderConfig(**SIZES, architecture="bert", hidden_dropout_prob=0.0).model_dump()
    assert values == values | dropout | {"hidden_dropout_prob": 0}
    # The first layer and every third are global, and all of the original architecture.
    assert [layer for layer in range(7) if modern.is_global(layer)] == [0, 3, 6]
    assert all(bert.is_global(layer) for layer in range(4))


def test_sizes_that_do_not_fit_are_refused():
    for change, message in (
        ({"num_attention_heads": 5}, "hidden_size 32 is not a multiple of num_attention_heads 5: change one of them"),
        ({"num_attention_heads": 32}, "num_attention_heads 32 = 1, but rotary positions need an even head size"),
        ({"pad_token_id": 100}, "pad_token_id 100 is not an id in a vocabulary of 100"),
        ({"local_attention": 7}, "multiple of 2"),
        *(({"layer_groups": groups}, EQUAL.format(groups)) for groups in (3, 4, 8)),
        ({"hiden_size": 32}, "Extra inputs are not permitted"),
        ({"architecture": "albert"}, "'bert' or 'modern'"),
    ):
        with pytest.raises(ValidationError, match=message):
            EncoderConfig.model_validate(SIZES | change)
