"""The names of our weights in `transformers`, in one table for export and loading."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from korbert.modeling.config import EncoderConfig

__all__ = ["CLASSES", "HEADS", "LOADED", "Family", "family_of", "from_transformers", "to_transformers"]

Family = Literal["bert", "modern", "albert", "electra"]
"""Naming scheme of weights. ALBERT is a `bert` with shared layers; ELECTRA may have narrow embeddings, too."""

_Names = Mapping[str, tuple[str, ...]]
"""Our module -> theirs. Several of theirs are concatenated by rows."""


def _below(encoder: str) -> dict[str, tuple[str, ...]]:
    return {
        "encoder.embeddings.token": (f"{encoder}.embeddings.word_embeddings",),
        "encoder.embeddings.position": (f"{encoder}.embeddings.position_embeddings",),
        "encoder.embeddings.token_type": (f"{encoder}.embeddings.token_type_embeddings",),
        "encoder.embeddings.norm": (f"{encoder}.embeddings.LayerNorm",),
    }


_ENCODER: Mapping[Family, _Names] = {
    "bert": _below("bert"),
    "modern": {
        "encoder.embeddings.token": ("model.embeddings.tok_embeddings",),
        "encoder.embeddings.boundary": ("model.embeddings.boundary",),  # these two: of modeling_korbert.py
        "encoder.embeddings.overlap": ("model.embeddings.overlap",),
        "encoder.embeddings.norm": ("model.embeddings.norm",),
        "encoder.final_norm": ("model.final_norm",),
    },
    "albert": _below("albert") | {"encoder.embeddings.projection": ("albert.encoder.embedding_hidden_mapping_in",)},
    "electra": _below("electra") | {"encoder.embeddings.projection": ("electra.embeddings_project",)},
}
_BERT_LAYER: _Names = {
    "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.output": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "up": ("intermediate.dense",),
    "down": ("output.dense",),
    "feed_forward_norm": ("output.LayerNorm",),
}
_LAYER: Mapping[Family, _Names] = {
    "bert": _BERT_LAYER,
    "electra": _BERT_LAYER,
    "albert": {
        "attention.qkv": ("attention.query", "attention.key", "attention.value"),
        "attention.output": ("attention.dense",),
        "attention_norm": ("attention.LayerNorm",),
        "up": ("ffn",),
        "down": ("ffn_output",),
        "feed_forward_norm": ("full_layer_layer_norm",),
    },
    "modern": {
        "attention_norm": ("attn_norm",),
        "attention.qkv": ("attn.Wqkv",),
        "attention.output": ("attn.Wo",),
        "feed_forward_norm": ("mlp_norm",),
        "up": ("mlp.Wi",),
        "down": ("mlp.Wo",),
    },
}
_LAYERS: Mapping[Family, str] = {
    "bert": "bert.encoder.layer.{}",
    "modern": "model.layers.{}",
    "albert": "albert.encoder.albert_layer_groups.{}.albert_layers.0",
    "electra": "electra.encoder.layer.{}",
}
_MODERN_HEAD: _Names = {"head.dense": ("head.dense",), "head.norm": ("head.norm",), "classifier": ("classifier",)}
HEADS: Mapping[tuple[Family, str], _Names] = {
    ("bert", "pretraining"): {
        "mlm": ("cls.predictions",),
        "mlm.transform.dense": ("cls.predictions.transform.dense",),
        "mlm.transform.norm": ("cls.predictions.transform.LayerNorm",),
        "nsp.pooler.dense": ("bert.pooler.dense",),
        "nsp.classifier": ("cls.seq_relationship",),
    },
    ("bert", "classification"): {"head.dense": ("bert.pooler.dense",), "classifier": ("classifier",)},
    ("bert", "choice"): {"head.dense": ("bert.pooler.dense",), "classifier": ("classifier",)},
    ("bert", "reading"): {"classifier": ("qa_outputs",)},
    ("bert", "tagging"): {"classifier": ("classifier",)},
    ("bert", "embedding"): {},
    ("albert", "pretraining"): {
        "mlm": ("predictions",),
        "mlm.transform.dense": ("predictions.dense",),
        "mlm.transform.norm": ("predictions.LayerNorm",),
        "nsp.pooler.dense": ("albert.pooler",),
        "nsp.classifier": ("sop_classifier.classifier",),
    },
    ("albert", "classification"): {"head.dense": ("albert.pooler",), "classifier": ("classifier",)},
    ("albert", "choice"): {"head.dense": ("albert.pooler",), "classifier": ("classifier",)},
    ("albert", "reading"): {"classifier": ("qa_outputs",)},
    ("albert", "tagging"): {"classifier": ("classifier",)},
    ("albert", "embedding"): {},
    ("electra", "pretraining"): {
        "mlm": ("generator_lm_head",),
        "mlm.transform.dense": ("generator_predictions.dense",),
        "mlm.transform.norm": ("generator_predictions.LayerNorm",),
        "nsp.pooler.dense": (),
        "nsp.classifier": (),
    },
    ("electra", "detection"): {
        "head.dense": ("discriminator_predictions.dense",),
        "classifier": ("discriminator_predictions.dense_prediction",),
        "nsp.pooler.dense": (),
        "nsp.classifier": (),
    },
    ("electra", "reading"): {"classifier": ("qa_outputs",)},
    ("electra", "tagging"): {"classifier": ("classifier",)},
    ("modern", "pretraining"): {
        "mlm": ("decoder",),
        "mlm.transform.dense": ("head.dense",),
        "mlm.transform.norm": ("head.norm",),
        "nsp.pooler.dense": (),  # no ModernBERT class has next sentence prediction
        "nsp.classifier": (),
    },
    ("modern", "classification"): _MODERN_HEAD,
    ("modern", "choice"): _MODERN_HEAD,
    ("modern", "reading"): _MODERN_HEAD,
    ("modern", "tagging"): _MODERN_HEAD,
    ("modern", "embedding"): {},
}
CLASSES: Mapping[tuple[Family, str], str] = {
    ("albert", "pretraining"): "AlbertForPreTraining",
    ("albert", "classification"): "AlbertForSequenceClassification",
    ("albert", "choice"): "AlbertForMultipleChoice",
    ("albert", "reading"): "AlbertForQuestionAnswering",
    ("albert", "tagging"): "AlbertForTokenClassification",
    ("albert", "embedding"): "AlbertModel",
    ("electra", "detection"): "ElectraForPreTraining",
    ("bert", "pretraining"): "BertForPreTraining",
    ("bert", "classification"): "BertForSequenceClassification",
    ("bert", "choice"): "BertForMultipleChoice",
    ("bert", "reading"): "BertForQuestionAnswering",
    ("bert", "tagging"): "BertForTokenClassification",
    ("bert", "embedding"): "BertModel",
    ("modern", "pretraining"): "ModernBertForMaskedLM",
    ("modern", "classification"): "ModernBertForSequenceClassification",
    ("modern", "choice"): "ModernBertForMultipleChoice",
    ("modern", "reading"): "ModernBertForQuestionAnswering",
    ("modern", "tagging"): "ModernBertForTokenClassification",
    ("modern", "embedding"): "ModernBertModel",
}
"""(family, kind of model) -> the class of `transformers` that is exported."""

LOADED: Mapping[str, tuple[Family, str]] = {name: key for key, name in CLASSES.items()} | {
    **{f"Korbert{name}": key for key, name in CLASSES.items() if key[0] == "modern"},
    "BertModel": ("bert", "pretraining"),
    "BertForMaskedLM": ("bert", "pretraining"),
    "BertForNextSentencePrediction": ("bert", "pretraining"),
    "ModernBertModel": ("modern", "pretraining"),
    "AlbertModel": ("albert", "pretraining"),
    "AlbertForMaskedLM": ("albert", "pretraining"),
    "ElectraModel": ("electra", "pretraining"),
    "ElectraForMaskedLM": ("electra", "pretraining"),
    "ElectraForQuestionAnswering": ("electra", "reading"),
    "ElectraForTokenClassification": ("electra", "tagging"),
}
"""Class of `transformers` -> (family, our kind of model)."""


def family_of(config: EncoderConfig, kind: str) -> Family:
    """The family that a model of this kind is exported as."""
    if config.architecture == "bert" and kind == "detection":
        return "electra"
    if config.architecture == "bert" and (config.layer_groups or config.embedding_width != config.hidden_size):
        return "albert"
    return config.architecture


def to_transformers(tensors: Mapping[str, Tensor], config: EncoderConfig, kind: str) -> dict[str, Tensor]:
    """Our weights under the names of `transformers`. Tied ones appear once, as in its files.

    AlbertModel always projects its embeddings; if ours are as wide as the encoder, the projection is the identity.
    The names of an encoder alone (kind "embedding") have no prefix. BertModel and AlbertModel also have a pooler, which
    sentence vectors do not use: it is 0, as `transformers` would initialize and report missing weights.
    """
    names = _names(config, family_of(config, kind), kind)
    renamed = {}
    for name, tensor in tensors.items():
        module, _, leaf = name.rpartition(".")
        theirs = names[module]
        for target, part in zip(theirs, tensor.chunk(max(1, len(theirs))), strict=False):
            renamed[f"{target}.{leaf}"] = part
    width = config.hidden_size
    if family_of(config, kind) == "albert" and config.embedding_width == width:
        (projection,) = names["encoder.embeddings.projection"]
        renamed |= {f"{projection}.weight": torch.eye(width), f"{projection}.bias": torch.zeros(width)}
    if kind != "embedding":
        return renamed
    renamed = {name.partition(".")[2]: tensor for name, tensor in renamed.items()}
    if config.architecture == "bert":
        pooler = "pooler" if family_of(config, kind) == "albert" else "pooler.dense"
        renamed |= {f"{pooler}.weight": torch.zeros(width, width), f"{pooler}.bias": torch.zeros(width)}
    return renamed


def from_transformers(
    tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor], config: EncoderConfig, family: Family, kind: str
) -> dict[str, Tensor]:
    """Weights of `transformers` under our names, float32; missing ones are left out.

    expected: the state dict of our model.
    """
    names = _names(config, family, kind)
    ours = {}
    for name in expected:
        module, _, leaf = name.rpartition(".")
        sources = [f"{source}.{leaf}" for source in names[module]]
        if sources and all(source in tensors for source in sources):
            ours[name] = torch.cat([tensors[source].float() for source in sources])
    return ours


def _names(config: EncoderConfig, family: Family, kind: str) -> dict[str, tuple[str, ...]]:
    """Our module -> theirs, layer by layer."""
    span_head: _Names = {"reader.head.dense": (), "reader.head.norm": (), "reader.classifier": ()}
    names = {**_ENCODER[family], **HEADS[family, kind], **span_head}
    for layer in range(config.distinct_layers):
        for ours, theirs in _LAYER[family].items():
            prefix = _LAYERS[family].format(layer)
            names[f"encoder.layers.{layer}.{ours}"] = tuple(f"{prefix}.{name}" for name in theirs)
    return names
