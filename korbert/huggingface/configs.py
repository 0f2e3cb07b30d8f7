"""Converts our config to the config.json of `transformers`; refuses what that cannot express."""

from typing import Any

from korbert.errors import ModelError
from korbert.huggingface.conversion import CLASSES, family_of
from korbert.modeling import EncoderConfig
from korbert.tokenization import FIRST_PIECE

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
                "export: this `bert` has {name} = true, only a `modern` is exported with that: {remedy}, or "
                "use the model with korbert",
                name=name,
                remedy=remedy,
            )
    shared = {name: getattr(config, name) for name in _SHARED}
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
        raise ModelError("export: this `bert` has no token types, BertModel has: train one with type_vocab_size = 2")
    narrow: dict[str, Any] = {}
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


def _modern_config(config: EncoderConfig) -> dict[str, Any]:
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
