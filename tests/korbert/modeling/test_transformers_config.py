"""Configs of transformers as a recipe says them: what no encoder can be built of is refused by name."""

import pytest

from korbert.errors import ModelError
from korbert.modeling.transformers_config import CLASSES, new_config

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.mark.parametrize("model_type", CLASSES)
def test_every_architecture_has_defaults_and_the_ids_of_our_tokenizers(model_type):
    config = new_config({"model_type": model_type}, 102_400)
    assert config.vocab_size == 102_400
    offset = model_type in ("roberta", "xlm-roberta", "longformer")
    default = config.transformers.get("max_position_embeddings", 512)
    assert config.max_position_embeddings == default - offset
    expected = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    assert config.transformers.items() >= {(name, expected[name]) for name in expected.keys() & config.transformers}
    assert config.pad_token_id == 0


def test_config_entries_may_have_the_usual_names():
    own = new_config({"model_type": "distilbert", "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}, 50)
    usual = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    assert new_config({"model_type": "distilbert", "hidden_dim": 32, **usual}, 50) == own
    assert new_config({"model_type": "funnel", "max_position_embeddings": 2048}, 50).max_position_embeddings == 2048


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, r"^model_type 'gpt2' is not supported: use one of albert, bert"),
        ({}, r"^model_type 'None' is not supported"),
        ({"hiden_size": 16}, r"^hiden_size: no entry in a config of bert \(did you mean hidden_size\?\)$"),
        ({"embedding_size": 16}, r"^embedding_size: no entry in a config of bert"),
        ({"vocab_size": 100}, r"^vocab_size is not a setting: the tokenizer determines it: remove it"),
        ({"pad_token_id": 1}, r"^pad_token_id is not a setting: the tokenizer determines it"),
        ({"hidden_size": "wide"}, r"^is not a valid config of bert \(.*hidden_size.*\): correct it"),
        ({"is_decoder": True}, r"^is a decoder, which sees no later pieces: take an encoder"),
        ({"num_hidden_layers": 0}, r"^invalid encoder config: num_hidden_layers: .*greater than or equal to 1"),
        ({"hidden_act": "nope"}, r"^no encoder can be built from this config of bert \(KeyError: 'nope'\): correct it"),
        ({"hidden_size": 30, "num_attention_heads": 4}, r"^hidden size 30 is not a multiple of 4 attention heads"),
    ],
)
def test_invalid_configs_are_refused(changes, message):
    theirs = {"model_type": "bert", **SIZES, **changes} if changes else {}
    with pytest.raises(ModelError, match=message):
        new_config(theirs, 500)
