"""The names of our weights in `transformers`, in one table for export and loading."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from korbert.modeling import models
from korbert.modeling.config import EncoderConfig

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
_POOLERS = {"albert": "pooler", **dict.fromkeys(("bert", "roberta", "xlm-roberta"), "pooler.dense")}


def _mlm_head(decoder: str, dense: str, norm: str, *nsp: str) -> Names:
    """The modules of an MLM head. nsp: pooler and classifier of the head of sentence pairs, which few classes have."""
    pooler, classifier = ((name,) for name in nsp) if nsp else ((), ())
    return {
        "mlm": (decoder,),
        "mlm.transform.dense": (dense,),
        "mlm.transform.norm": (norm,),
        "nsp.pooler.dense": pooler,
        "nsp.classifier": classifier,
    }


def _on_first_piece(dense: str) -> dict[str, Names]:
    """The heads on the vector of the first piece, by kind of model."""
    names: Names = {"head.dense": (dense,), "classifier": ("classifier",)}
    return {"classification": names, "multiple-choice": names}


ON_PIECES: dict[str, Names] = {
    "question-answering": {"classifier": ("qa_outputs",)},
    "token-classification": {"classifier": ("classifier",)},
    "embedding": {},
}
"""Heads that are a linear layer over pieces, or nothing, by kind of model."""

_ELECTRA_MLM = _mlm_head("generator_lm_head", "generator_predictions.dense", "generator_predictions.LayerNorm")
_BERT_MLM = "cls.predictions", "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"
_ROBERTA: Mapping[str, Names] = ON_PIECES | {
    "pretraining": _mlm_head("lm_head", "lm_head.dense", "lm_head.layer_norm"),
    "classification": {"head.dense": ("classifier.dense",), "classifier": ("classifier.out_proj",)},
}
HEADS: Mapping[str, Mapping[str, Names]] = {
    "bert": ON_PIECES
    | _on_first_piece("bert.pooler.dense")
    | {"pretraining": _mlm_head(*_BERT_MLM, "bert.pooler.dense", "cls.seq_relationship")},
    "albert": ON_PIECES
    | _on_first_piece("albert.pooler")
    | {
        "pretraining": _mlm_head(
            "predictions", "predictions.dense", "predictions.LayerNorm", "albert.pooler", "sop_classifier.classifier"
        )
    },
    "electra": ON_PIECES
    | {
        "pretraining": _ELECTRA_MLM,
        "detection": {
            "head.dense": ("discriminator_predictions.dense",),
            "classifier": ("discriminator_predictions.dense_prediction",),
            "nsp.pooler.dense": (),
            "nsp.classifier": (),
        },
    },
    "modern": {
        "pretraining": _mlm_head("decoder", "head.dense", "head.norm"),
        **dict.fromkeys(
            ("classification", "multiple-choice", "question-answering", "token-classification"), _MODERN_HEAD
        ),
        "embedding": {},
    },
    "modernbert": {"embedding": {}},  # these: of encoders in their own code
    "convbert": ON_PIECES | {"pretraining": _ELECTRA_MLM},
    "deberta-v2": ON_PIECES | {"pretraining": _mlm_head(*_BERT_MLM)},
    "distilbert": ON_PIECES | {"pretraining": _mlm_head("vocab_projector", "vocab_transform", "vocab_layer_norm")},
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
"""Our modules of the head -> theirs, by family or model_type, and kind of model. Other model_types: ON_PIECES."""

ENDINGS = {cls.kind: cls.exported for cls in models.CLASSES.values() if cls.exported and not cls.not_exported}
"""Kind of model -> how the names of their classes end; those of pretraining differ."""

_PREFIXES: Mapping[Family, str] = {"bert": "Bert", "albert": "Albert", "modern": "ModernBert"}
CLASSES: Mapping[tuple[Family, str], str] = {
    ("bert", "pretraining"): "BertForPreTraining",
    ("albert", "pretraining"): "AlbertForPreTraining",
    ("electra", "detection"): "ElectraForPreTraining",
    ("modern", "pretraining"): "ModernBertForMaskedLM",
    **{(family, kind): f"{prefix}{ending}" for family, prefix in _PREFIXES.items() for kind, ending in ENDINGS.items()},
}
"""(family, kind of model) -> the class of `transformers` that is exported."""

LOADED: Mapping[str, tuple[Family, str]] = {
    **{name: key for key, name in CLASSES.items()},
    **{f"Korbert{name}": key for key, name in CLASSES.items() if key[0] == "modern"},
    **{f"{prefix}Model": (family, "pretraining") for family, prefix in (*_PREFIXES.items(), ("electra", "Electra"))},
    "BertForMaskedLM": ("bert", "pretraining"),
    "BertForNextSentencePrediction": ("bert", "pretraining"),
    "AlbertForMaskedLM": ("albert", "pretraining"),
    "ElectraForMaskedLM": ("electra", "pretraining"),
    "ElectraForQuestionAnswering": ("electra", "question-answering"),
    "ElectraForTokenClassification": ("electra", "token-classification"),
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
    The names of an encoder alone (kind "embedding") have no prefix.
    """
    family = family_of(config, kind)
    names = _names(config, family, kind)
    renamed = {}
    for name, tensor in tensors.items():
        module, _, leaf = name.rpartition(".")
        targets = names[module]
        for target, part in zip(targets, tensor.chunk(max(1, len(targets))), strict=False):
            renamed[f"{target}.{leaf}"] = part
    if family == "albert" and config.embedding_width == config.hidden_size:
        (projection,) = names["encoder.embeddings.projection"]
        width = config.hidden_size
        renamed |= {f"{projection}.weight": torch.eye(width), f"{projection}.bias": torch.zeros(width)}
    if kind != "embedding":
        return renamed
    renamed = {name.partition(".")[2]: tensor for name, tensor in renamed.items()}
    return renamed | unused_pooler(family, config.hidden_size)


def unused_pooler(model_type: str, width: int) -> dict[str, Tensor]:
    """The weights of the pooler that some encoders have and sentence vectors do not use, all 0: `transformers`
    initializes and reports missing ones."""
    if (pooler := _POOLERS.get(model_type)) is None:
        return {}
    return {f"{pooler}.weight": torch.zeros(width, width), f"{pooler}.bias": torch.zeros(width)}


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
    span_head: Names = {"reader.head.dense": (), "reader.head.norm": (), "reader.classifier": ()}
    names = {**_ENCODER[family], **HEADS[family][kind], **span_head}
    for layer in range(config.distinct_layers):
        for ours, theirs in _LAYER[family].items():
            prefix = _LAYERS[family].format(layer)
            names[f"encoder.layers.{layer}.{ours}"] = tuple(f"{prefix}.{name}" for name in theirs)
    return names
