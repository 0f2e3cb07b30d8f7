import json
import logging

import pytest
import torch
import transformers

from korbert.errors import ModelError
from korbert.huggingface.configs import config_from_transformers, config_to_transformers
from korbert.huggingface.loading import load_transformers
from korbert.modeling.config import EncoderConfig
from korbert.modeling.models import PretrainingModel

SIZES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 5, "num_attention_heads": 4, "intermediate_size": 48}
SIZES |= {"max_position_embeddings": 64}


@pytest.fixture
def modern_folder(tmp_path):
    ids = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"))
    config = transformers.ModernBertConfig(**SIZES, **ids, pad_token_id=0)
    transformers.ModernBertForMaskedLM(config).save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "config",
    [
        {"architecture": "bert", "hidden_dropout_prob": 0.2},
        {"architecture": "modern", "layer_norm_eps": 1e-6, "attention_probs_dropout_prob": 0.1},
        {"architecture": "modern", "global_attn_every_n_layers": 2, "local_attention": 32, "local_rope_theta": 500.0},
        {"architecture": "modern", "global_attn_every_n_layers": 1, "global_rope_theta": 9000.0},
    ],
)
def test_a_config_is_the_same_after_conversion_and_back(config):
    ours = EncoderConfig.model_validate(SIZES | config)
    theirs = config_to_transformers(ours, "pretraining") | {
        "architectures": [{"bert": "BertModel"}.get(ours.architecture, "ModernBertModel")]
    }
    classes = {"bert": transformers.BertConfig, "modern": transformers.ModernBertConfig}
    through_them = classes[ours.architecture](**theirs).to_dict()
    assert config_from_transformers(theirs) == (ours, ours.architecture, "pretraining")
    assert config_from_transformers(through_them) == (ours, ours.architecture, "pretraining")


def test_configs_of_the_fourth_major_version_are_read():
    old = SIZES | {"model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "pad_token_id": 0}
    old |= {"global_attn_every_n_layers": 2, "global_rope_theta": 8e4, "local_rope_theta": 5e3, "local_attention": 64}
    config, _, _ = config_from_transformers(old)
    assert (config.global_attn_every_n_layers, config.local_attention) == (2, 64)
    assert (config.global_rope_theta, config.local_rope_theta) == (8e4, 5e3)


def test_missing_heads_are_initialized_and_named(modern_folder, caplog):
    with caplog.at_level(logging.WARNING):
        model = load_transformers(modern_folder, torch.Generator().manual_seed(1))
    assert "has no weights for nsp.classifier.bias, nsp.classifier.weight, nsp.pooler.dense.bias" in caplog.text
    assert "mlm" not in caplog.text
    again = load_transformers(str(modern_folder), torch.Generator().manual_seed(1))
    assert isinstance(model, PretrainingModel)
    assert isinstance(again, PretrainingModel)
    assert torch.equal(model.nsp.classifier.weight, again.nsp.classifier.weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "roberta"}, "model_type is not supported: use one of bert, modernbert, albert, electra"),
        ({"architectures": ["ModernBertForWhatever"]}, r"architectures \['ModernBertForWhat.*none of AlbertFor"),
        ({"hidden_activation": "silu"}, "hidden_activation = 'silu': this encoder supports only 'gelu'"),
        ({"norm_bias": True}, "norm_bias = True: this encoder supports only False"),
        ({"layer_types": ["sliding_attention"] * 5}, "not global at every n-th layer, the first one included"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 1.0}}},
            r"rope_parameters\.full_attention\.rope_type 'yarn': only 'default' is supported",
        ),
        ({"hidden_size": 64}, r"model\.safetensors: .* config\.json asks for .*: the two files do not match"),
        ({"num_hidden_layers": 6, "layer_types": None}, "no weights for encoder.layers.5.*they are of another encoder"),
    ],
)
def test_other_modernbert_configs_are_refused(modern_folder, change, message):
    path = modern_folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=message):
        load_transformers(modern_folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem_type": "ranking"}, r"config\.json: problem_type 'ranking' is none of single_label_classification"),
        ({"problem_type": ["regression"]}, r"problem_type \['regression'\] is none of single_label_classification"),
        ({"problem_type": "regression"}, r"config\.json: regression with 3 labels: set num_labels to 1"),
    ],
)
def test_unknown_problem_types_are_refused(tmp_path, change, message):
    transformers.BertForSequenceClassification(transformers.BertConfig(**SIZES, num_labels=3)).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=message):
        load_transformers(tmp_path)


@pytest.mark.parametrize(("file", "message"), [("config.json", "name a folder that"), ("model.safetensors", "as one")])
def test_missing_files_are_named(modern_folder, file, message):
    (modern_folder / file).unlink()
    with pytest.raises(ModelError, match=rf"{file}: cannot be read \(.*\): .*{message}"):
        load_transformers(modern_folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inner_group_num": 2}, r"inner_group_num = 2: only groups of one layer are supported"),
        (
            {"num_hidden_groups": 2, "num_hidden_layers": 3},
            r"invalid encoder config: sizes: .*layer_groups 2 does not divide 3 layers into equal groups of",
        ),
        ({"embedding_size": 16}, "embedding_size = hidden_size: this encoder has a projection only where they differ"),
    ],
)
def test_other_albert_configs_are_refused(tmp_path, change, message):
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = {"embedding_size": 8, "num_hidden_groups": 2, "intermediate_size": 16, "hidden_act": "gelu"}
    albert = transformers.AlbertModel(transformers.AlbertConfig(**{**sizes, **config, **change}))
    albert.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=message):
        load_transformers(tmp_path)
