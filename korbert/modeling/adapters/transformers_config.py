"""Converts the config of an encoder of `transformers` to ours, and back."""

import inspect
import json
from collections.abc import Mapping
from typing import Any

import torch

from korbert.errors import ModelError
from korbert.modeling.config import TransformersConfig
from korbert.system import package
from korbert.system.transformers_package import quietly, reason_of

CLASSES: Mapping[str, str] = {  # model_type -> the class without a head
    "albert": "AlbertModel",
    "bert": "BertModel",
    "convbert": "ConvBertModel",
    "deberta-v2": "DebertaV2Model",
    "distilbert": "DistilBertModel",
    "electra": "ElectraModel",
    "flaubert": "FlaubertModel",
    "funnel": "FunnelModel",
    "longformer": "LongformerModel",
    "modernbert": "ModernBertModel",
    "roberta": "RobertaModel",
    "xlm": "XLMModel",
    "xlm-roberta": "XLMRobertaModel",
}
_OFFSET = ("roberta", "xlm-roberta", "longformer")  # positions start after the padding id (Liu et al. 2019's code)
_NO_TOKEN_TYPES = ("distilbert", "modernbert", "xlm", "flaubert")  # none, or rows of the vocabulary (XLM)
_NO_LIMIT = 512  # pieces per row of an encoder without a limit (Funnel), as in BERT
_NOT_KEPT = ("_name_or_path", "architectures", "dtype", "id2label", "label2id", "torch_dtype", "transformers_version")
_DROPOUT_NAMES = ("hidden_dropout_prob", "hidden_dropout", "dropout", "mlp_dropout")  # the first that is set counts


def adapted_config(theirs: Mapping[str, object]) -> TransformersConfig:
    """Our config of an encoder, from their config.json. ModelError if the architecture is not supported."""
    model_type = str(theirs.get("model_type"))
    class_of(model_type)  # refuses others
    if theirs.get("is_decoder") or theirs.get("is_encoder_decoder") or theirs.get("causal"):
        raise ModelError("is a decoder, which sees no later pieces: take an encoder")
    config = their_config(model_type, {key: value for key, value in theirs.items() if key not in _NOT_KEPT})
    pad = config.pad_token_id if isinstance(config.pad_token_id, int) else 0
    positions = getattr(config, "max_position_embeddings", None) or _NO_LIMIT
    types = 0 if model_type in _NO_TOKEN_TYPES else 3 if model_type == "funnel" else config.type_vocab_size
    rates = (getattr(config, name, None) for name in _DROPOUT_NAMES)
    return TransformersConfig.parse(
        {
            "transformers": json.loads(config.to_json_string(use_diff=False)) | {"model_type": model_type},
            "vocab_size": config.vocab_size,
            "hidden_size": config.hidden_size,
            "embedding_width": getattr(config, "embedding_size", config.hidden_size),
            "num_hidden_layers": config.num_hidden_layers,
            "max_position_embeddings": positions - (pad + 1 if model_type in _OFFSET else 0),
            "type_vocab_size": types if types > 1 else 0,
            "hidden_dropout_prob": next((float(rate) for rate in rates if rate is not None), 0.0),
            "layer_norm_eps": getattr(config, "norm_eps", None) or getattr(config, "layer_norm_eps", None) or 1e-12,
            "pad_token_id": pad,
        }
    )


def class_of(model_type: str) -> Any:
    """The `transformers` class of an architecture. ModelError if it is not supported, SettingsError if absent."""
    if model_type not in CLASSES:
        raise ModelError(
            "model_type {model_type!r:.60} is not supported: use one of {classes}",
            model_type=model_type,
            classes=", ".join(CLASSES),
        )
    return getattr(package("transformers", f"an encoder of architecture {model_type}"), CLASSES[model_type])


def their_config(model_type: str, values: Mapping[str, object]) -> Any:
    """The config object of `transformers`. ModelError if the values of its config.json are not valid."""
    kind = class_of(model_type).config_class
    try:
        with quietly():
            return kind.from_dict(dict(values))
    except Exception as error:  # its checks raise all kinds of errors
        raise ModelError(
            "is not a valid config of {model_type} ({reason_of}): correct it",
            model_type=model_type,
            reason_of=reason_of(error),
        ) from None


def options(config: TransformersConfig) -> dict[str, object]:
    """Arguments for their class: float32, and no pooler where it can be turned off."""
    has_pooler = "add_pooling_layer" in inspect.signature(class_of(config.model_type).__init__).parameters
    return {"dtype": torch.float32} | ({"add_pooling_layer": False} if has_pooler else {})
