"""Encoders of transformers that korbert trained with its own tokenizer, as folders of their own classes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from foreign_folders import CONFIGS

from korbert.errors import ModelError
from korbert.huggingface import export
from korbert.huggingface.check import TOLERANCE
from korbert.modeling import (
    ChoiceModel,
    ClassificationModel,
    EmbeddingModel,
    PretrainingModel,
    ReadingModel,
    TaggingModel,
    save_model,
)
from korbert.modeling.foreign import CLASSES, new_config
from korbert.modeling.models import Model
from korbert.tokenization import Tokenizer

BUILT: dict[str, Any] = {
    "pretraining": PretrainingModel,
    "classification": lambda config: ClassificationModel(config, 3, "first"),
    "choice": lambda config: ChoiceModel(config, "first"),
    "reading": ReadingModel,
    "tagging": lambda config: TaggingModel(config, ["O", "B-PS", "I-PS"]),
    "embedding": EmbeddingModel,
}
MLM = {"albert", "bert", "convbert", "deberta-v2", "distilbert", "electra", "roberta", "xlm-roberta"}
NONE = {"funnel", "longformer"}
WRITTEN = {  # kind -> whose heads are ours
    "pretraining": MLM,
    "classification": {"albert", "bert", "roberta", "xlm-roberta"},
    "choice": {"albert", "bert"},
    "reading": set(CLASSES) - NONE - {"modernbert"},
    "tagging": set(CLASSES) - NONE - {"modernbert"},
    "embedding": set(CLASSES) - NONE,
}
CHANGES = {"albert": {"hidden_act": "gelu"}}


def built(kind: str, model_type: str, tokenizer: Tokenizer, **others: Any) -> Model:
    """No bias 0 and no norm 1: a weight in the wrong place shows."""
    given = {"model_type": model_type, **CONFIGS[model_type], **CHANGES.get(model_type, {}), **others}
    model: Model = BUILT[kind](new_config(given, tokenizer.vocab_size))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=generator))
    return model


@pytest.mark.parametrize(("kind", "model_type"), [(kind, one) for kind in WRITTEN for one in sorted(WRITTEN[kind])])
def test_their_classes_compute_what_ours_do(
    kind: str, model_type: str, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    save_model(tmp_path / "ours", built(kind, model_type, tiny_tokenizer), tiny_tokenizer)
    differences = export(tmp_path / "ours", tmp_path / "theirs", check=True)
    assert max(differences.values()) <= TOLERANCE
    assert ("nsp_logits" in differences) == (kind == "pretraining" and model_type in ("albert", "bert"))


@pytest.mark.parametrize(
    ("kind", "model_type", "others", "message"),
    [
        ("pretraining", "funnel", {}, r"export: an encoder of funnel: its \[CLS\] has a token type of its own"),
        ("embedding", "longformer", {}, "export: an encoder of longformer: its first piece has global attention here"),
        ("pretraining", "xlm", {}, "export: no class of transformers for xlm has the head of our pretraining models"),
        ("tagging", "modernbert", {}, "no class of transformers for modernbert has the head of our tagging models"),
        ("classification", "electra", {}, "no class of transformers for electra has the head of our classification"),
        (
            "pretraining",
            "albert",
            {"hidden_act": "gelu_new"},
            'the MLM head of albert would have gelu_new, ours has gelu: pretrain with hidden_act = "gelu", or use',
        ),
        (
            "pretraining",
            "distilbert",
            {"activation": "relu"},
            'the MLM head of distilbert would have relu, ours has gelu: pretrain with activation = "gelu", or use',
        ),
        ("pretraining", "deberta-v2", {"legacy": False}, "the MLM head of DeBERTa is ours only with legacy = true"),
    ],
)
def test_heads_that_are_not_ours_are_refused(
    kind: str, model_type: str, others: dict[str, Any], message: str, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    save_model(tmp_path / "ours", built(kind, model_type, tiny_tokenizer, **others), tiny_tokenizer)
    with pytest.raises(ModelError, match=message):
        export(tmp_path / "ours", tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()
