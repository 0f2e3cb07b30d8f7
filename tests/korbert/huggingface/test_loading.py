import json
import logging

import pytest
import torch
import transformers

from korbert.errors import ModelError
from korbert.huggingface.configs import config_from_transformers, config_to_transformers
from korbert.huggingface.importing import load_transformers
from korbert.modeling.config import EncoderConfig
from korbert.modeling.models import PretrainingModel

SIZES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 5, "num_attention_heads": 4, "intermediate_size": 48}
SIZES |= {"max_position_embeddings": 64}

YARN = {"full_attention": {"rope_type": "yarn", "rope_theta": 1.0}}
FEWER_GROUPS = {"num_hidden_groups": 2, "num_hidden_layers": 3}


def saved(kind, folder):
    """A folder of transformers of this kind of model."""
    ids = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")) | {"pad_token_id": 0}
    shared = {"embedding_size": 8, "num_hidden_groups": 5, "hidden_act": "gelu"}
    model = {
        "modernbert": lambda: transformers.ModernBertForMaskedLM(transformers.ModernBertConfig(**SIZES, **ids)),
        "bert": lambda: transformers.BertForSequenceClassification(transformers.BertConfig(**SIZES, num_labels=3)),
        "albert": lambda: transformers.AlbertModel(transformers.AlbertConfig(**SIZES, **shared)),
    }[kind]()
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    "config",
    [
        {"architecture": "bert", "hidden_dropout_prob": 0.2},
        {"layer_norm_eps": 1e-6, "attention_probs_dropout_prob": 0.1},
        {"global_attn_every_n_layers": 2, "local_attention": 32, "local_rope_theta": 500.0},
        {"global_attn_every_n_layers": 1, "global_rope_theta": 9000.0},
    ],
)
def test_a_config_is_the_same_after_conversion_and_back(config):
    ours = EncoderConfig.model_validate(SIZES | config)
    name = {"bert": "Bert", "modern": "ModernBert"}[ours.architecture]
    theirs = config_to_transformers(ours, "pretraining") | {"architectures": [f"{name}Model"]}
    for read in (theirs, getattr(transformers, f"{name}Config")(**theirs).to_dict()):
        assert config_from_transformers(read) == (ours, ours.architecture, "pretraining")


def test_configs_of_the_fourth_major_version_are_read():
    old = SIZES | {"model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "pad_token_id": 0}
    old |= {"global_attn_every_n_layers": 2, "global_rope_theta": 8e4, "local_rope_theta": 5e3, "local_attention": 64}
    config, _, _ = config_from_transformers(old)
    assert (config.global_attn_every_n_layers, config.local_attention) == (2, 64)
    assert (config.global_rope_theta, config.local_rope_theta) == (8e4, 5e3)


def test_missing_heads_are_initialized_and_missing_files_are_named(tmp_path, caplog):
    saved("modernbert", tmp_path)
    with caplog.at_level(logging.WARNING):
        model = load_transformers(tmp_path, torch.Generator().manual_seed(1))
    assert "has no weights for nsp.classifier.bias, nsp.classifier.weight, nsp.pooler.dense.bias" in caplog.text
    assert "mlm" not in caplog.text
    again = load_transformers(str(tmp_path), torch.Generator().manual_seed(1))
    assert isinstance(again, PretrainingModel)
    assert torch.equal(model.nsp.classifier.weight, again.nsp.classifier.weight)
    for file, message in (("model.safetensors", "as one"), ("config.json", "name a folder that")):
        (tmp_path / file).unlink()
        with pytest.raises(ModelError, match=rf"{file}: cannot be read \(.*\): .*{message}"):
            load_transformers(tmp_path)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("modernbert", {"model_type": "roberta"}, "is not supported: use one of bert, modernbert, albert, electra"),
        ("modernbert", {"architectures": ["BertForWhat"]}, r"architectures \['BertForWhat.*none of AlbertFor"),
        ("modernbert", {"hidden_activation": "silu"}, "'silu': this encoder supports only 'gelu'"),
        ("modernbert", {"norm_bias": True}, "norm_bias = True: this encoder supports only False"),
        ("modernbert", {"layer_types": ["sliding_attention"] * 5}, "not global at every n-th layer, the first one"),
        ("modernbert", {"rope_parameters": YARN}, r"full_attention\.rope_type 'yarn': only 'default' is supported"),
        ("modernbert", {"hidden_size": 64}, r"model\.safetensors: .* config\.json asks for .*: the two files do not"),
        ("modernbert", {"num_hidden_layers": 6, "layer_types": None}, "no weights for encoder.layers.5.*of another"),
        ("bert", {"problem_type": "ranking"}, "problem_type 'ranking' is none of single_label_classification"),
        ("bert", {"problem_type": ["regression"]}, r"problem_type \['regression'\] is none of single_label"),
        ("bert", {"problem_type": "regression"}, r"config\.json: regression with 3 labels: set num_labels to 1"),
        ("albert", {"inner_group_num": 2}, r"inner_group_num = 2: only groups of one layer are supported"),
        ("albert", FEWER_GROUPS, "invalid encoder config: sizes: .*layer_groups 2 does not divide 3 layers into equal"),
        ("albert", {"embedding_size": 32}, "embedding_size = hidden_size: this encoder has a projection only where"),
    ],
)
def test_other_configs_are_refused(tmp_path, kind, change, message):
    path = saved(kind, tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=message):
        load_transformers(tmp_path)
