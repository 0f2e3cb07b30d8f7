"""Loads models of `transformers` as our models."""

import logging
from pathlib import Path
from typing import Any, get_args

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from korbert._transformers import their_json
from korbert.errors import ModelError
from korbert.huggingface.configs import config_from_transformers
from korbert.huggingface.conversion import Family, from_transformers
from korbert.modeling.config import EncoderConfig
from korbert.modeling.models import CLASSES, Model, ProblemType

_logger = logging.getLogger(__name__)

_TYPES = ("bert", "modernbert", "albert", "electra", "korbert-modernbert")
_PREFIXES = {"BertModel": "bert.", "ModernBertModel": "model.", "AlbertModel": "albert.", "ElectraModel": "electra."}


def load_transformers(folder: str | Path, generator: torch.Generator | None = None) -> Model:
    """Loads a folder written by `transformers` (BERT, ModernBERT, ELECTRA, or ALBERT with narrow embeddings;
    model.safetensors), in eval mode.

    Weights only: the ids are those of the folder's own tokenizer. A head that the folder lacks is initialized from
    `generator` (None: torch's own), with a warning. ModelError if our model cannot compute the same.
    """
    folder = Path(folder)
    path, weights = folder / "config.json", folder / "model.safetensors"
    theirs = their_json(path)
    if not isinstance(theirs, dict) or theirs.get("model_type") not in _TYPES:
        raise ModelError(f"{path}: model_type is not supported: use one of {', '.join(_TYPES)}")
    try:
        tensors = safetensors.torch.load_file(weights)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{weights}: cannot be read ({error}): save the model as one safetensors file") from None
    names = theirs.get("architectures") or [""]
    if names[0] in _PREFIXES:  # saved without the prefix of the other classes
        tensors = {_PREFIXES[names[0]] + name: tensor for name, tensor in tensors.items()}
    try:
        config, family, kind = config_from_transformers(theirs)
        model = _build(theirs, config, kind, generator)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    _fill(folder, model, family, tensors)
    return model.eval()


def _build(theirs: dict[str, Any], config: EncoderConfig, kind: str, generator: torch.Generator | None) -> Model:
    names = theirs.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    labels = [label for _, label in sorted((int(key), label) for key, label in names.items())]
    usual = "regression" if len(labels) == 1 else "single_label_classification"  # as their losses assume
    settings = {
        "num_labels": len(labels),
        "pooling": "mean" if theirs.get("classifier_pooling") == "mean" else "first",  # only ModernBERT has that key
        "labels": labels,
        "problem_type": theirs.get("problem_type") or usual,
    }
    model: Any = CLASSES[kind]
    own = {name: value for name, value in settings.items() if name in model.saved}
    if "problem_type" in own and own["problem_type"] not in get_args(ProblemType):
        raise ModelError(f"problem_type {own['problem_type']!r:.60} is none of {', '.join(get_args(ProblemType))}")
    built: Model = model(config, **own, generator=generator)
    return built


def _fill(folder: Path, model: Model, family: Family, tensors: dict[str, Tensor]) -> None:
    """Loads the weights. ModelError if one of the encoder is missing or has another shape."""
    expected, config = model.state_dict(), model.config
    assert isinstance(config, EncoderConfig)
    ours = from_transformers(tensors, expected, config, family, model.kind)
    missing = sorted(expected.keys() - ours.keys())
    if broken := [name for name in missing if name.startswith("encoder.")]:
        raise ModelError(
            f"{folder / 'model.safetensors'}: no weights for {', '.join(broken[:3])}: they are of another encoder"
        )
    for name, tensor in ours.items():
        if tensor.shape != expected[name].shape:
            raise ModelError(
                f"{folder / 'model.safetensors'}: {name} is {list(tensor.shape)}, config.json asks for"
                f" {list(expected[name].shape)}: the two files do not match"
            )
    if missing:
        _logger.warning("%s has no weights for %s: newly initialized", folder, ", ".join(missing))
    model.load_state_dict(ours, strict=False)
