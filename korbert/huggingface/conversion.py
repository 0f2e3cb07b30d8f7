"""Our config and weights as those of `transformers`; refuses what these cannot express."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from korbert.errors import ModelError
from korbert.messages import Message
from korbert.modeling import EncoderConfig, models
from korbert.system import JsonObject
from korbert.tokenization import FIRST_PIECE

# Naming scheme of weights. ALBERT is a `bert` with shared layers; ELECTRA may have narrow embeddings, too.
Family = Literal["bert", "modern", "albert", "electra"]

Names = Mapping[str, tuple[str, ...]]  # our module -> theirs; several of theirs are concatenated by rows


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
        "linear": {"vectors": ("classifier",), "": ("head",)},
        "embedding": {},
    },
}

_ENDINGS = {cls.kind: cls.exported for cls in models.CLASSES.values() if cls.exported and not cls.not_exported}
_PREFIXES: Mapping[Family, str] = {"bert": "Bert", "albert": "Albert", "modern": "ModernBert"}
CLASSES: Mapping[tuple[Family, str], str] = {  # (family, kind of model) -> their class that is exported
    ("bert", "pretraining"): "BertForPreTraining",
    ("albert", "pretraining"): "AlbertForPreTraining",
    ("electra", "detection"): "ElectraForPreTraining",
    ("modern", "pretraining"): "ModernBertForMaskedLM",
    **{
        (family, kind): f"{prefix}{ending}" for family, prefix in _PREFIXES.items() for kind, ending in _ENDINGS.items()
    },
}


def family_of(config: EncoderConfig, kind: str) -> Family:
    """The family that a model of this kind is exported as."""
    if config.architecture == "bert" and kind == "detection":
        return "electra"
    if config.architecture == "bert" and (config.layer_groups or config.embedding_width != config.hidden_size):
        return "albert"
    return config.architecture


# Entries of the same name on both sides.
_SHARED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "initializer_range",
    "pad_token_id",
)
_OURS = {  # of modeling_korbert.py -> how to have a `bert` without it, which has no such class
    "boundary_embedding": Message("train one without"),
    "overlap_embedding": Message("fine-tune with overlap = false"),
    "piece_weights": Message("fine-tune with piece_weights = false"),
}
_HEAD_NAMES = (  # of modeling_korbert.py: an encoder is fine-tuned under any of them
    "ForMaskedLM",
    "ForMultipleChoice",
    "ForQuestionAnswering",
    "ForSequenceClassification",
    "ForTokenClassification",
)
_OF_WORDS = ("terms", "frequencies", "words")  # tensors of a linear model
_OF_BERT = ("type_vocab_size", "hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps")


def config_to_transformers(config: EncoderConfig, kind: str) -> JsonObject:
    """config.json for a model of that kind. ModelError if nothing in `transformers` computes the same."""
    for name, remedy in _OURS.items():
        if getattr(config, name) and config.architecture == "bert":
            raise ModelError(
                "export: this `bert` has {name} = true, only a `modern` is exported with that: {remedy}, or "
                "use the model with korbert",
                name=name,
                remedy=remedy,
            )
    shared = {name: getattr(config, name) for name in _SHARED} | {"tie_word_embeddings": True, "dtype": "float32"}
    family_config = _bert_config(config, kind) if config.architecture == "bert" else _modern_config(config, kind)
    name = CLASSES[family_of(config, kind), kind]
    if family_config["model_type"] != "korbert-modernbert":
        return shared | family_config | {"architectures": [name]}
    named = {f"Auto{part}": f"modeling_korbert.KorbertModernBert{part}" for part in ("Config", "Model")}
    named |= {f"AutoModel{head}": f"modeling_korbert.KorbertModernBert{head}" for head in _HEAD_NAMES}
    return shared | family_config | {"architectures": [f"Korbert{name}"], "auto_map": named}


def _bert_config(config: EncoderConfig, kind: str) -> JsonObject:
    if not config.type_vocab_size:
        raise ModelError("export: this `bert` has no token types, BertModel has: train one with type_vocab_size = 2")
    narrow: JsonObject = {}
    if family_of(config, kind) == "electra":
        if config.layer_groups:
            raise ModelError(
                "export: the layers of this `bert` share their weights (layer_groups = {layer_groups}), and no "
                "class of transformers with such layers finds replaced pieces: fine-tune it, and export that",
                layer_groups=config.layer_groups,
            )
        narrow = {"embedding_size": config.embedding_width}
    if family_of(config, kind) == "albert":  # one group a layer: no weights are shared
        narrow = {
            "embedding_size": config.embedding_width,
            "num_hidden_groups": config.distinct_layers,
            "inner_group_num": 1,
            "classifier_dropout_prob": config.hidden_dropout_prob,
            "bos_token_id": 2,
            "eos_token_id": 3,
        }
    return narrow | {
        "model_type": family_of(config, kind),
        "hidden_act": "gelu",
        **{name: getattr(config, name) for name in _OF_BERT},
    }


def _modern_config(config: EncoderConfig, kind: str) -> JsonObject:
    lacking = {"layer_groups": config.layer_groups, "type_vocab_size": config.type_vocab_size}
    if config.embedding_width != config.hidden_size:
        lacking["embedding_size"] = config.embedding_size
    for name, value in lacking.items():
        if value:
            raise ModelError(
                "export: this `modern` has {name} = {value}, ModernBERT has no such thing: train one without, "
                "or use the model with korbert",
                name=name,
                value=value,
            )
    extensions = {name: getattr(config, name) for name in _OURS}
    if kind == "linear":
        extensions["linear_head"] = True
    named: JsonObject = {"model_type": "modernbert"}
    if any(extensions.values()):
        named = {"model_type": "korbert-modernbert", "first_piece_id": FIRST_PIECE, **extensions}
    return named | {
        "norm_eps": config.layer_norm_eps,
        "embedding_dropout": config.hidden_dropout_prob,
        "mlp_dropout": config.hidden_dropout_prob,
        "classifier_dropout": config.hidden_dropout_prob,
        "attention_dropout": config.attention_probs_dropout_prob,
        "local_attention": config.local_attention,
        "layer_types": [
            "full_attention" if config.is_global(layer) else "sliding_attention"
            for layer in range(config.num_hidden_layers)
        ],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": config.global_rope_theta},
            "sliding_attention": {"rope_type": "default", "rope_theta": config.local_rope_theta},
        },
        "bos_token_id": None,  # the defaults are ids of another vocabulary
        "eos_token_id": None,
        "cls_token_id": 2,
        "sep_token_id": 3,
    }


def to_transformers(tensors: Mapping[str, Tensor], config: EncoderConfig, kind: str) -> dict[str, Tensor]:
    """Our weights under the names of `transformers`. Tied ones appear once, as in its files.

    AlbertModel always projects its embeddings; if ours are as wide as the encoder, the projection is the identity.
    The names of an encoder alone (kind "embedding") have no prefix. Words of a linear model are left out.
    """
    family = family_of(config, kind)
    width = config.hidden_size
    # Our module -> theirs, layer by layer.
    span_head: Names = {"reader.head.dense": (), "reader.head.norm": (), "reader.classifier": ()}
    names = {**_ENCODER[family], **_HEADS[family][kind], **span_head}
    for layer in range(config.distinct_layers):
        for ours, theirs in _LAYER[family].items():
            prefix = _LAYERS[family].format(layer)
            names[f"encoder.layers.{layer}.{ours}"] = tuple(f"{prefix}.{name}" for name in theirs)

    renamed = {}
    for name, tensor in tensors.items():
        if name in _OF_WORDS:
            continue
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
