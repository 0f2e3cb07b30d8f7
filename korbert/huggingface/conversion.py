"""The names of our weights in `transformers`."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from korbert.modeling import EncoderConfig, models

Family = Literal["bert", "modern", "albert", "electra"]
"""Naming scheme of weights. ALBERT is a `bert` with shared layers; ELECTRA may have narrow embeddings, too."""

Names = Mapping[str, tuple[str, ...]]
"""Our module -> theirs. Several of theirs are concatenated by rows."""


def _below(encoder: str) -> dict[str, tuple[str, ...]]:
    return {
        "encoder.embeddings.token": (f"{encoder}.embeddings.word_embeddings",),
        "encoder.embeddings.position": (f"{encoder}.embeddings.position_embeddings",),
        "encoder.embeddings.token_type": (f"{encoder}.embeddings.token_type_embeddings",),
        "encoder.embeddings.norm": (f"{encoder}.embeddings.LayerNorm",),
    }


_ENCODER: Mapping[Family, Names] = {
    "bert": _below("bert"),
    "modern": {
        "encoder.embeddings.token": ("model.embeddings.tok_embeddings",),
        # These two and piece_weight: of modeling_korbert.py
        "encoder.embeddings.boundary": ("model.embeddings.boundary",),
        "encoder.embeddings.overlap": ("model.embeddings.overlap",),
        "encoder.embeddings.norm": ("model.embeddings.norm",),
        "encoder.final_norm": ("model.final_norm",),
        "encoder.piece_weight": ("model.final_norm.piece_weight",),
    },
    "albert": _below("albert") | {"encoder.embeddings.projection": ("albert.encoder.embedding_hidden_mapping_in",)},
    "electra": _below("electra") | {"encoder.embeddings.projection": ("electra.embeddings_project",)},
}
_BERT_LAYER: Names = {
    "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.output": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "up": ("intermediate.dense",),
    "down": ("output.dense",),
    "feed_forward_norm": ("output.LayerNorm",),
}
_LAYER: Mapping[Family, Names] = {
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
_MODERN_HEAD: Names = {"head.dense": ("head.dense",), "head.norm": ("head.norm",), "classifier": ("classifier",)}
_ON_PIECES: Mapping[str, Names] = {
    "question-answering": {"classifier": ("qa_outputs",)},
    "token-classification": {"classifier": ("classifier",)},
    "embedding": {},
}


def _on_first_piece(dense: str) -> dict[str, Names]:
    """The heads on the vector of the first piece, by kind of model."""
    names: Names = {"head.dense": (dense,), "classifier": ("classifier",)}
    return {"classification": names, "multiple-choice": names}


_HEADS: Mapping[Family, Mapping[str, Names]] = {
    "bert": {
        "pretraining": {
            "mlm": ("cls.predictions",),
            "mlm.transform.dense": ("cls.predictions.transform.dense",),
            "mlm.transform.norm": ("cls.predictions.transform.LayerNorm",),
            "nsp.pooler.dense": ("bert.pooler.dense",),
            "nsp.classifier": ("cls.seq_relationship",),
        },
        **_on_first_piece("bert.pooler.dense"),
        **_ON_PIECES,
    },
    "albert": {
        "pretraining": {
            "mlm": ("predictions",),
            "mlm.transform.dense": ("predictions.dense",),
            "mlm.transform.norm": ("predictions.LayerNorm",),
            "nsp.pooler.dense": ("albert.pooler",),
            "nsp.classifier": ("sop_classifier.classifier",),
        },
        **_on_first_piece("albert.pooler"),
        **_ON_PIECES,
    },
    "electra": {
        "detection": {
            "head.dense": ("discriminator_predictions.dense",),
            "classifier": ("discriminator_predictions.dense_prediction",),
            "nsp.pooler.dense": (),
            "nsp.classifier": (),
        },
    },
    "modern": {
        "pretraining": {
            "mlm": ("decoder",),
            "mlm.transform.dense": ("head.dense",),
            "mlm.transform.norm": ("head.norm",),
            "nsp.pooler.dense": (),
            "nsp.classifier": (),
        },
        **dict.fromkeys(
            ("classification", "multiple-choice", "question-answering", "token-classification"), _MODERN_HEAD
        ),
        "embedding": {},
    },
}

_ENDINGS = {cls.kind: cls.exported for cls in models.CLASSES.values() if cls.exported and not cls.not_exported}
_PREFIXES: Mapping[Family, str] = {"bert": "Bert", "albert": "Albert", "modern": "ModernBert"}
CLASSES: Mapping[tuple[Family, str], str] = {
    ("bert", "pretraining"): "BertForPreTraining",
    ("albert", "pretraining"): "AlbertForPreTraining",
    ("electra", "detection"): "ElectraForPreTraining",
    ("modern", "pretraining"): "ModernBertForMaskedLM",
    **{
        (family, kind): f"{prefix}{ending}" for family, prefix in _PREFIXES.items() for kind, ending in _ENDINGS.items()
    },
}
"""(family, kind of model) -> the class of `transformers` that is exported."""


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
    The names of an encoder alone (kind "embedding") have no prefix.
    """
    family, width = family_of(config, kind), config.hidden_size
    # Our module -> theirs, layer by layer.
    span_head: Names = {"reader.head.dense": (), "reader.head.norm": (), "reader.classifier": ()}
    names = {**_ENCODER[family], **_HEADS[family][kind], **span_head}
    for layer in range(config.distinct_layers):
        for ours, theirs in _LAYER[family].items():
            prefix = _LAYERS[family].format(layer)
            names[f"encoder.layers.{layer}.{ours}"] = tuple(f"{prefix}.{name}" for name in theirs)

    renamed = {}
    for name, tensor in tensors.items():
        module, _, leaf = name.rpartition(".")
        targets = names[module]
        for target, part in zip(targets, tensor.chunk(max(1, len(targets))), strict=False):
            renamed[f"{target}.{leaf}"] = part
    if family == "albert" and config.embedding_width == width:
        (projection,) = names["encoder.embeddings.projection"]
        renamed |= {f"{projection}.weight": torch.eye(width), f"{projection}.bias": torch.zeros(width)}
    if kind != "embedding":
        return renamed
    renamed = {name.partition(".")[2]: tensor for name, tensor in renamed.items()}
    # Sentence vectors use no pooler; `transformers` would initialize and report a missing one.
    if pooler := {"bert": "pooler.dense", "albert": "pooler"}.get(family):
        renamed |= {f"{pooler}.weight": torch.zeros(width, width), f"{pooler}.bias": torch.zeros(width)}
    return renamed
