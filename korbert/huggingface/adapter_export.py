"""Exports models with an encoder of `transformers` and our tokenizer, as its classes with heads.

Refuses heads that compute something else than ours.
"""

from typing import Any

from torch import Tensor

from korbert.errors import ModelError
from korbert.huggingface.conversion import ENDINGS, HEADS, ON_PIECES, Names, unused_pooler
from korbert.modeling.config import TransformersConfig
from korbert.modeling.models import Model
from korbert.modeling.transformers_config import CLASSES, class_of

_REFUSED = {
    "funnel": "its [CLS] has a token type of its own, which no exported tokenizer gives",
    "longformer": "its first piece has global attention here, for which users of transformers would have to ask",
}
_ACTIVATION = {"albert": "hidden_act", "bert": "hidden_act", "deberta-v2": "hidden_act", "distilbert": "activation"}
_NOT_WRITTEN = ("_name_or_path", "id2label", "label2id", "problem_type", "transformers_version")


def adapter_config(config: TransformersConfig, kind: str) -> dict[str, Any]:
    """config.json of `transformers` for a model of that kind. ModelError if none of its classes computes the same."""
    _names(config, kind)  # refuses others
    of_pretraining = "ForPreTraining" if config.model_type in ("albert", "bert") else "ForMaskedLM"
    ending = ENDINGS.get(kind, of_pretraining)
    if kind == "question-answering" and config.model_type in ("xlm", "flaubert"):
        ending += "Simple"  # the others of these two search for spans by beam
    kept = {name: value for name, value in config.transformers.items() if name not in _NOT_WRITTEN}
    named = CLASSES[config.model_type].removesuffix("Model") + ending
    return kept | {"architectures": [named], "tie_word_embeddings": True, "dtype": "float32"}


def adapter_weights(model: Model) -> dict[str, Tensor]:
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
    return renamed | unused_pooler(config.model_type, config.hidden_size) if alone else renamed


def _names(config: TransformersConfig, kind: str) -> Names:
    """Our modules of the head -> theirs. ModelError if `transformers` has no such head."""
    model_type = config.model_type
    if reason := _REFUSED.get(model_type):
        raise ModelError(f"export: an encoder of {model_type}: {reason}: use the model with korbert")
    if (names := HEADS.get(model_type, ON_PIECES).get(kind)) is None:
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
