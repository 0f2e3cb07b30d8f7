"""Exports models with an encoder of `transformers` and our tokenizer, as its classes with heads.

Refuses heads that compute something else than ours.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from korbert.errors import ModelError
from korbert.huggingface.conversion import HEADS
from korbert.modeling.config import TransformersConfig
from korbert.modeling.models import Model
from korbert.modeling.transformers_config import CLASSES, class_of

__all__ = ["foreign_config", "foreign_weights"]

_Names = Mapping[str, tuple[str, ...]]

_LM_HEAD: _Names = {
    "mlm": ("lm_head",),
    "mlm.transform.dense": ("lm_head.dense",),
    "mlm.transform.norm": ("lm_head.layer_norm",),
    "nsp.pooler.dense": (),
    "nsp.classifier": (),
}
_ON_FIRST: _Names = {"head.dense": ("classifier.dense",), "classifier": ("classifier.out_proj",)}
_HEADS: Mapping[tuple[str, str], _Names] = {
    **{(str(family), kind): names for (family, kind), names in HEADS.items() if family != "modern"},
    ("roberta", "pretraining"): _LM_HEAD,
    ("xlm-roberta", "pretraining"): _LM_HEAD,
    ("distilbert", "pretraining"): {
        "mlm": ("vocab_projector",),
        "mlm.transform.dense": ("vocab_transform",),
        "mlm.transform.norm": ("vocab_layer_norm",),
        "nsp.pooler.dense": (),
        "nsp.classifier": (),
    },
    ("deberta-v2", "pretraining"): {
        "mlm": ("cls.predictions",),
        "mlm.transform.dense": ("cls.predictions.transform.dense",),
        "mlm.transform.norm": ("cls.predictions.transform.LayerNorm",),
        "nsp.pooler.dense": (),
        "nsp.classifier": (),
    },
    ("convbert", "pretraining"): HEADS["electra", "pretraining"],
    ("roberta", "classification"): _ON_FIRST,
    ("xlm-roberta", "classification"): _ON_FIRST,
}
_PLAIN: Mapping[str, _Names] = {  # a linear layer over pieces, or no head
    "reading": {"classifier": ("qa_outputs",)},
    "tagging": {"classifier": ("classifier",)},
    "embedding": {},
}
_WITH_NSP = ("albert", "bert")
_ENDINGS = {
    "classification": "ForSequenceClassification",
    "choice": "ForMultipleChoice",
    "reading": "ForQuestionAnswering",
    "tagging": "ForTokenClassification",
    "embedding": "Model",
}
_REFUSED = {
    "funnel": "its [CLS] has a token type of its own, which no exported tokenizer gives",
    "longformer": "its first piece has global attention here, for which users of transformers would have to ask",
}
_ACTIVATION = {"albert": "hidden_act", "bert": "hidden_act", "deberta-v2": "hidden_act", "distilbert": "activation"}
_POOLERS = {"albert": "pooler", **dict.fromkeys(("bert", "roberta", "xlm-roberta"), "pooler.dense")}
_NOT_WRITTEN = ("_name_or_path", "id2label", "label2id", "problem_type", "transformers_version")


def foreign_config(config: TransformersConfig, kind: str) -> dict[str, Any]:
    """config.json of `transformers` for a model of that kind. ModelError if none of its classes computes the same."""
    _names(config, kind)  # refuses others
    ending = _ENDINGS.get(kind) or ("ForPreTraining" if config.model_type in _WITH_NSP else "ForMaskedLM")
    if kind == "reading" and config.model_type in ("xlm", "flaubert"):
        ending += "Simple"  # the others of these two search for spans by beam
    kept = {name: value for name, value in config.transformers.items() if name not in _NOT_WRITTEN}
    named = CLASSES[config.model_type].removesuffix("Model") + ending
    return kept | {"architectures": [named], "tie_word_embeddings": True, "dtype": "float32"}


def foreign_weights(model: Model) -> dict[str, Tensor]:
    """The weights under the names of `transformers`, tied ones once; see conversion.to_transformers."""
    config = model.config
    assert isinstance(config, TransformersConfig)
    names = _names(config, model.kind)
    alone = model.kind == "embedding"
    prefix = "" if alone else f"{class_of(config.model_type).base_model_prefix}."
    renamed = {}
    for name, tensor in model.state_dict().items():
        if name.startswith("encoder.model."):
            renamed[prefix + name.removeprefix("encoder.model.")] = tensor
            continue
        module, _, leaf = name.rpartition(".")
        if module == "reader.classifier":  # of "spans"; no class has it beside an MLM head
            continue
        renamed |= {f"{target}.{leaf}": tensor for target in names[module]}
    if alone and (pooler := _POOLERS.get(config.model_type)):  # transformers initializes and reports a missing one
        width = config.hidden_size
        renamed |= {f"{pooler}.weight": torch.zeros(width, width), f"{pooler}.bias": torch.zeros(width)}
    return renamed


def _names(config: TransformersConfig, kind: str) -> _Names:
    """Our modules of the head -> theirs. ModelError if `transformers` has no such head."""
    model_type = config.model_type
    if reason := _REFUSED.get(model_type):
        raise ModelError(f"export: an encoder of {model_type}: {reason}: use the model with korbert")
    names = _HEADS.get((model_type, kind))
    if names is None and (model_type != "modernbert" or kind == "embedding"):
        names = _PLAIN.get(kind)
    if names is None:
        raise ModelError(
            f"export: no class of transformers for {model_type} has the head of our {kind} models: use the model with"
            " korbert"
        )
    activation = config.transformers.get(_ACTIVATION.get(model_type, ""), "gelu")
    if kind == "pretraining" and activation != "gelu":
        raise ModelError(
            f"export: the MLM head of {model_type} would have {activation}, ours has gelu: pretrain with"
            f' {_ACTIVATION[model_type]} = "gelu", or use the model with korbert'
        )
    if kind == "pretraining" and config.transformers.get("legacy") is False:
        raise ModelError("export: the MLM head of DeBERTa is ours only with legacy = true: pretrain with that")
    return names
