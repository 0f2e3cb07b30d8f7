"""The names of our weights in `transformers`: one table for export and for loading."""

from collections.abc import Mapping

import torch
from torch import Tensor

from korbert.modeling.config import EncoderConfig

__all__ = ["CLASSES", "from_transformers", "to_transformers"]

_Names = Mapping[str, tuple[str, ...]]
"""Our module -> theirs. Several: ours has their rows one below the other."""

_ENCODER: Mapping[str, _Names] = {
    "bert": {
        "encoder.embeddings.token": ("bert.embeddings.word_embeddings",),
        "encoder.embeddings.position": ("bert.embeddings.position_embeddings",),
        "encoder.embeddings.token_type": ("bert.embeddings.token_type_embeddings",),
        "encoder.embeddings.norm": ("bert.embeddings.LayerNorm",),
    },
    "modern": {
        "encoder.embeddings.token": ("model.embeddings.tok_embeddings",),
        "encoder.embeddings.norm": ("model.embeddings.norm",),
        "encoder.final_norm": ("model.final_norm",),
    },
}
_LAYER: Mapping[str, _Names] = {
    "bert": {
        "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attention.output": ("attention.output.dense",),
        "attention_norm": ("attention.output.LayerNorm",),
        "up": ("intermediate.dense",),
        "down": ("output.dense",),
        "feed_forward_norm": ("output.LayerNorm",),
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
_LAYERS = {"bert": "bert.encoder.layer", "modern": "model.layers"}
_HEADS: Mapping[tuple[str, str], _Names] = {
    ("bert", "pretraining"): {
        "mlm": ("cls.predictions",),
        "mlm.transform.dense": ("cls.predictions.transform.dense",),
        "mlm.transform.norm": ("cls.predictions.transform.LayerNorm",),
        "nsp.pooler.dense": ("bert.pooler.dense",),
        "nsp.classifier": ("cls.seq_relationship",),
    },
    ("bert", "classification"): {"head.dense": ("bert.pooler.dense",), "classifier": ("classifier",)},
    ("bert", "reading"): {"classifier": ("qa_outputs",)},
    ("modern", "pretraining"): {
        "mlm": ("decoder",),
        "mlm.transform.dense": ("head.dense",),
        "mlm.transform.norm": ("head.norm",),
        "nsp.pooler.dense": (),  # they have no class with next sentence prediction
        "nsp.classifier": (),
    },
    ("modern", "classification"): {
        "head.dense": ("head.dense",),
        "head.norm": ("head.norm",),
        "classifier": ("classifier",),
    },
    ("modern", "reading"): {
        "head.dense": ("head.dense",),
        "head.norm": ("head.norm",),
        "classifier": ("classifier",),
    },
}
CLASSES = {
    ("bert", "pretraining"): "BertForPreTraining",
    ("bert", "classification"): "BertForSequenceClassification",
    ("bert", "reading"): "BertForQuestionAnswering",
    ("modern", "pretraining"): "ModernBertForMaskedLM",
    ("modern", "classification"): "ModernBertForSequenceClassification",
    ("modern", "reading"): "ModernBertForQuestionAnswering",
}
"""(architecture, kind of model) -> class of `transformers`."""


def to_transformers(tensors: Mapping[str, Tensor], config: EncoderConfig, kind: str) -> dict[str, Tensor]:
    """Our weights under the names of `transformers`. Tied ones appear once, as in its files."""
    names = _names(config, kind)
    renamed = {}
    for name, tensor in tensors.items():
        module, _, leaf = name.rpartition(".")
        theirs = names[module]
        for target, part in zip(theirs, tensor.chunk(max(1, len(theirs))), strict=False):
            renamed[f"{target}.{leaf}"] = part
    return renamed


def from_transformers(
    tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor], config: EncoderConfig, kind: str
) -> dict[str, Tensor]:
    """Weights of `transformers` under our names, float32, without those that are missing.

    expected: the state dict of our model.
    """
    names = _names(config, kind)
    ours = {}
    for name in expected:
        module, _, leaf = name.rpartition(".")
        sources = [f"{source}.{leaf}" for source in names[module]]
        if sources and all(source in tensors for source in sources):
            ours[name] = torch.cat([tensors[source].float() for source in sources])
    return ours


def _names(config: EncoderConfig, kind: str) -> dict[str, tuple[str, ...]]:
    """Our module -> theirs, layer by layer."""
    names = {**_ENCODER[config.architecture], **_HEADS[config.architecture, kind]}
    for layer in range(config.num_hidden_layers):
        for ours, theirs in _LAYER[config.architecture].items():
            prefix = f"{_LAYERS[config.architecture]}.{layer}"
            names[f"encoder.layers.{layer}.{ours}"] = tuple(f"{prefix}.{name}" for name in theirs)
    return names
