"""Folders of `transformers` with odd records: one line with file and field, before anything of them is loaded."""

import json

import pytest

from korbert.errors import ModelError
from korbert.huggingface.importing import load_encoder, read_folder
from korbert.modeling.config import TransformersConfig
from korbert.tokenization.transformers_tokenizer import saved_files

CONFIG = {"model_type": "bert", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_attention_heads": 0}, "num_attention_heads: 0 is not a whole number from 1: correct it"),
        ({"num_attention_heads": 5}, "num_attention_heads: 5 does not divide hidden_size 32: correct either"),
        ({"num_hidden_layers": "two"}, "num_hidden_layers: 'two' is not a whole number from 1: correct it"),
        ({"vocab_size": True}, "vocab_size: True is not a whole number from 1: correct it"),
        ({"pad_token_id": 100}, "pad_token_id: 100 is no entry of a vocabulary of 100: correct it"),
        ({"pad_token_id": -1}, "pad_token_id: -1 is no entry of a vocabulary of 100: correct it"),
        ({"quantization_config": {"quant_method": "bnb"}}, "quantization_config: 'bnb': import the model with its"),
        ({"auto_map": {"AutoModel": "code.Model"}}, "auto_map: the model needs code of its folder, which is never run"),
    ],
)
def test_an_odd_config_is_named_by_its_field(tmp_path, changes, said):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | changes), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        read_folder(tmp_path)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize("length", ["long", [], True, 0, -1])
def test_an_odd_length_of_a_tokenizer_is_named(tmp_path, length):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": length}), encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("[UNK]\n", encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer_config\.json: model_max_length: .* is not a number of pieces"):
        saved_files(tmp_path)


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ({"weight_map": {"a": "m.safetensors", "b": "pytorch_model.bin"}}, "'pytorch_model.bin' is no safetensors"),
        ({"weight_map": {"a": "../other/model.safetensors"}}, "'../other/model.safetensors' is no safetensors file"),
        ({"weight_map": []}, "cannot be read"),
        ([], "cannot be read"),
    ],
)
def test_an_index_may_name_only_safetensors(tmp_path, index, said):
    """A pickle behind it would run its code."""
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    sizes = {"vocab_size": 9, "hidden_size": 4, "embedding_width": 4, "num_hidden_layers": 1}
    config = TransformersConfig.parse({"transformers": CONFIG, "max_position_embeddings": 8, **sizes})
    with pytest.raises(ModelError) as caught:
        load_encoder(tmp_path, config)
    assert str(caught.value).startswith(f"{path}: weight_map: {said}")
