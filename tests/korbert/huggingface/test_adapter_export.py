"""Encoders of transformers that korbert trained with its own tokenizer, as folders of their own classes."""

import itertools

import pytest
from exported import stirred
from foreign_folders import CONFIGS

from korbert.errors import ModelError
from korbert.huggingface import export
from korbert.huggingface.check import TOLERANCE
from korbert.modeling import save_model
from korbert.modeling.transformers_config import CLASSES, new_config
from tests.korbert.tiny import model_with

MLM = {"albert", "bert", "convbert", "deberta-v2", "distilbert", "electra", "roberta", "xlm-roberta"}
NONE = {"funnel", "longformer"}
WRITTEN = {  # kind -> whose heads are ours
    "pretraining": MLM,
    "one label": {"albert", "bert", "roberta", "xlm-roberta"},
    "multiple-choice": {"albert", "bert"},
    "question-answering": set(CLASSES) - NONE - {"modernbert"},
    "token-classification": set(CLASSES) - NONE - {"modernbert"},
    "embedding": set(CLASSES) - NONE,
}
CHANGES = {"albert": {"hidden_act": "gelu"}}
NO_CLASS = "export: no class of transformers for {} has the head of our {} models"
OTHER_ACTIVATION = 'the MLM head of {0} would have {2}, ours has gelu: pretrain with {1} = "gelu", or use'


def built(kind, model_type, tokenizer, **others):
    settings = {"model_type": model_type, **CONFIGS[model_type], **CHANGES.get(model_type, {}), **others}
    return stirred(model_with(kind, new_config(settings, tokenizer.vocab_size)), 0.05)


@pytest.mark.parametrize(
    ("kind", "model_type"),
    [  # quickly each kind once and each type once
        pytest.param(kind, one, marks=() if kind == "embedding" or one == "albert" else pytest.mark.slow)
        for kind in WRITTEN
        for one in sorted(WRITTEN[kind])
    ],
)
def test_their_classes_compute_what_ours_do(kind, model_type, tiny_tokenizer, tmp_path):
    save_model(tmp_path / "ours", built(kind, model_type, tiny_tokenizer), tiny_tokenizer)
    differences = export(tmp_path / "ours", tmp_path / "theirs", check=True)
    assert max(differences.values()) <= TOLERANCE
    assert ("nsp_logits" in differences) == (kind == "pretraining" and model_type in ("albert", "bert"))


@pytest.mark.parametrize(
    ("kind", "model_type", "others", "message"),
    [
        ("pretraining", "funnel", {}, r"export: an encoder of funnel: its \[CLS\] has a token type of its own"),
        ("embedding", "longformer", {}, "export: an encoder of longformer: its first piece has global attention here"),
        ("pretraining", "xlm", {}, NO_CLASS.format("xlm", "pretraining")),
        ("token-classification", "modernbert", {}, NO_CLASS.format("modernbert", "token-classification")),
        ("one label", "electra", {}, NO_CLASS.format("electra", "classification")),
        ("pretraining", "albert", {"hidden_act": "gelu_new"}, OTHER_ACTIVATION),
        ("pretraining", "distilbert", {"activation": "relu"}, OTHER_ACTIVATION),
        ("pretraining", "deberta-v2", {"legacy": False}, "the MLM head of DeBERTa is ours only with legacy = true"),
    ],
)  # fmt: skip
def test_heads_that_are_not_ours_are_refused(kind, model_type, others, message, tiny_tokenizer, tmp_path):
    save_model(tmp_path / "ours", built(kind, model_type, tiny_tokenizer, **others), tiny_tokenizer)
    with pytest.raises(ModelError, match=message.format(model_type, *itertools.chain(*others.items()))):
        export(tmp_path / "ours", tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()
