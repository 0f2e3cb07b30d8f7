"""Converts our config to the config.json of `transformers`, and back; refuses what the other cannot express."""

from collections.abc import Mapping
from typing import Any

from korbert.errors import ModelError
from korbert.huggingface.conversion import CLASSES, LOADED, Family, family_of
from korbert.modeling.config import EncoderConfig
from korbert.tokenization.vocabulary import FIRST_PIECE

# Entries of the same name on both sides.
_SHARED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "initializer_range",
)
_OURS = {  # of modeling_korbert.py -> how a `bert` is had without, which has no such class
    "boundary_embedding": "train one without",
    "overlap_embedding": "fine-tune with overlap = false",
    "piece_weights": "fine-tune with piece_weights = false",
}
_HEADS = (  # of modeling_korbert.py: an encoder is fine-tuned under any of them
    "ForMaskedLM",
    "ForMultipleChoice",
    "ForQuestionAnswering",
    "ForSequenceClassification",
    "ForTokenClassification",
)
_OF_BERT = ("type_vocab_size", "hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps")


def config_to_transformers(config: EncoderConfig, kind: str) -> dict[str, Any]:
    """config.json for a model of that kind. ModelError if nothing in `transformers` computes the same."""
    for name, remedy in _OURS.items():
        if getattr(config, name) and config.architecture == "bert":
            raise ModelError(
                f"export: this `bert` has {name} = true, only a `modern` is exported with that: {remedy}, or use the"
                " model with korbert"
            )
    shared = {name: getattr(config, name) for name in (*_SHARED, "pad_token_id")}
    shared |= {"tie_word_embeddings": True, "dtype": "float32"}
    own = _bert_config(config, kind) if config.architecture == "bert" else _modern_config(config)
    name = CLASSES[family_of(config, kind), kind]
    if not any(getattr(config, name) for name in _OURS):
        return shared | own | {"architectures": [name]}
    named = {f"Auto{part}": f"modeling_korbert.KorbertModernBert{part}" for part in ("Config", "Model")}
    named |= {f"AutoModel{head}": f"modeling_korbert.KorbertModernBert{head}" for head in _HEADS}
    return shared | own | {"architectures": [f"Korbert{name}"], "auto_map": named}


def _bert_config(config: EncoderConfig, kind: str) -> dict[str, Any]:
    if not config.type_vocab_size:
        raise ModelError(
            "export: this `bert` has no token types (type_vocab_size = 0), BertModel always adds them: train one with 2"
        )
    narrow: dict[str, Any] = {}
    if family_of(config, kind) == "electra":
        if config.layer_groups:
            raise ModelError(
                f"export: the layers of this `bert` share their weights (layer_groups = {config.layer_groups}), and no"
                " class of transformers with such layers finds replaced pieces: fine-tune it, and export that"
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


def _modern_config(config: EncoderConfig) -> dict[str, Any]:
    lacking = {"layer_groups": config.layer_groups, "type_vocab_size": config.type_vocab_size}
    if config.embedding_width != config.hidden_size:
        lacking["embedding_size"] = config.embedding_size
    for name, value in lacking.items():
        if value:
            raise ModelError(
                f"export: this `modern` has {name} = {value}, ModernBERT has no such thing: train one without, or use"
                " the model with korbert"
            )
    own = {name: getattr(config, name) for name in _OURS}
    named: dict[str, Any] = {"model_type": "modernbert"}
    if any(own.values()):
        named = {"model_type": "korbert-modernbert", "first_piece_id": FIRST_PIECE, **own}
    return named | {
        "norm_eps": config.layer_norm_eps,
        "embedding_dropout": config.hidden_dropout_prob,
        "mlp_dropout": config.hidden_dropout_prob,
        "classifier_dropout": config.hidden_dropout_prob,
        "attention_dropout": config.attention_probs_dropout_prob,
        "local_attention": config.local_attention,
        "layer_types": _layer_types(config.num_hidden_layers, config.global_attn_every_n_layers),
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": config.global_rope_theta},
            "sliding_attention": {"rope_type": "default", "rope_theta": config.local_rope_theta},
        },
        "bos_token_id": None,  # the defaults are ids of another vocabulary
        "eos_token_id": None,
        "cls_token_id": 2,
        "sep_token_id": 3,
    }


def _layer_types(layers: int, every: int) -> list[str]:
    return ["sliding_attention" if layer % every else "full_attention" for layer in range(layers)]


_BERT_FIXED = {"hidden_act": "gelu", "is_decoder": False, "tie_word_embeddings": True}
_MODERN_FIXED = {
    "hidden_activation": "gelu",
    "classifier_activation": "gelu",
    "norm_bias": False,
    "attention_bias": False,
    "mlp_bias": False,
    "classifier_bias": False,
    "decoder_bias": True,
    "tie_word_embeddings": True,
}


def config_from_transformers(theirs: Mapping[str, Any]) -> tuple[EncoderConfig, Family, str]:
    """Our config, the family and the kind of model for a config.json. ModelError if our encoder lacks a part."""
    names = theirs.get("architectures") or [""]
    if names[0] in ("ElectraForSequenceClassification", "ElectraForMultipleChoice"):
        raise ModelError(
            f"architectures {names}: its head has GELU, ours has tanh: take only the encoder, with"
            " `korbert import`, and fine-tune it again"
        )
    if names[0] not in LOADED:
        raise ModelError(f"architectures {names}: none of {', '.join(sorted(LOADED))}")
    family, kind = LOADED[names[0]]
    ours = {key: theirs[key] for key in _SHARED if key in theirs}
    if family == "modern":
        return EncoderConfig.parse(ours | _from_modern(theirs)), family, kind
    if family in ("albert", "electra"):
        ours["embedding_size"] = theirs.get("embedding_size", 128)
    if family == "albert":
        if (inner := theirs.get("inner_group_num", 1)) != 1:
            raise ModelError(f"inner_group_num = {inner}: only groups of one layer are supported")
        if theirs.get("embedding_size", 128) == theirs.get("hidden_size"):
            raise ModelError("embedding_size = hidden_size: this encoder has a projection only where they differ")
        groups = theirs.get("num_hidden_groups", 1)
        ours["layer_groups"] = None if groups == theirs.get("num_hidden_layers") else groups
    _refuse_others(theirs, _BERT_FIXED | {"position_embedding_type": "absolute"})
    ours |= {"architecture": "bert", "pad_token_id": theirs.get("pad_token_id") or 0}
    ours |= {key: theirs[key] for key in _OF_BERT if key in theirs}
    return EncoderConfig.parse(ours), family, kind


def _refuse_others(theirs: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """ModelError for a key with a value other than that of our encoder."""
    for key, value in fixed.items():
        if theirs.get(key, value) != value:
            raise ModelError(f"{key} = {theirs[key]!r}: this encoder supports only {value!r}")


def _from_modern(theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Both spellings: layer_types and rope_parameters (5.x), global_attn_every_n_layers and *_rope_theta (4.x)."""
    _refuse_others(theirs, _MODERN_FIXED)
    every = theirs.get("global_attn_every_n_layers", 3)
    if types := theirs.get("layer_types"):
        full = [layer for layer, name in enumerate(types) if name == "full_attention"]
        every = full[1] if len(full) > 1 else len(types)
        if types != _layer_types(theirs.get("num_hidden_layers", 0), every):
            raise ModelError(f"layer_types {types}: not global at every n-th layer, the first one included")
    return {
        "architecture": "modern",
        **{name: theirs.get(name, False) for name in _OURS},
        "pad_token_id": theirs.get("pad_token_id") or 0,
        "hidden_dropout_prob": theirs.get("mlp_dropout", 0.0),
        "attention_probs_dropout_prob": theirs.get("attention_dropout", 0.0),
        "layer_norm_eps": theirs.get("norm_eps", 1e-5),
        "local_attention": theirs.get("local_attention", 128),
        "global_attn_every_n_layers": every,
        "global_rope_theta": _theta(theirs, "full_attention", "global_rope_theta", 160_000.0),
        "local_rope_theta": _theta(theirs, "sliding_attention", "local_rope_theta", 10_000.0),
    }


def _theta(theirs: Mapping[str, Any], layer_type: str, old_key: str, default: float) -> float:
    rope = (theirs.get("rope_parameters") or {}).get(layer_type) or {}
    if rope.get("rope_type", "default") != "default":
        raise ModelError(f"rope_parameters.{layer_type}.rope_type {rope['rope_type']!r}: only 'default' is supported")
    return float(rope.get("rope_theta", theirs.get(old_key, default)))
