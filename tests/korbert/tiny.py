"""Small encoders, models with each head, the comparison of two models, and lines of JSON, for tests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from korbert.modeling import models
from korbert.modeling.config import AnyConfig, EncoderConfig


def tiny_config(architecture: str = "modern", **changes: Any) -> EncoderConfig:
    sizes = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 48, "max_position_embeddings": 64}
    return EncoderConfig.model_validate({"architecture": architecture, **sizes, **changes})


LABELS = ("분노", "기쁨", "슬픔")
_MANY, _NUMBER = ({"problem_type": name} for name in ("multi_label_classification", "regression"))
_HEADS: dict[str, tuple[Callable[..., models.Network], tuple[Any, ...], dict[str, Any]]] = {  # class, arguments
    "pretraining": (models.PretrainingModel, (), {}),
    "one label": (models.ClassificationModel, (3, "first", LABELS), {}),
    "labels": (models.ClassificationModel, (3, "first", LABELS), _MANY),
    "number": (models.ClassificationModel, (1, "first", ["비슷함"]), _NUMBER),
    "multiple-choice": (models.MultipleChoiceModel, ("first",), {}),
    "question-answering": (models.QuestionAnsweringModel, (), {}),
    "token-classification": (models.TokenClassificationModel, (["O", "B-인물", "I-인물"],), {}),
    "embedding": (models.EmbeddingModel, ("first", True), {}),
}
HEADS = tuple(_HEADS)


def model_with(head: str, config: AnyConfig, seed: int = 1) -> models.Network:
    """A new model with one of HEADS."""
    kind, arguments, named = _HEADS[head]
    return kind(config, *arguments, generator=torch.Generator().manual_seed(seed), **named)


def stirred(model: models.Network, by: float = 0.2) -> models.Network:
    """No bias 0 and no norm 1: a weight in the wrong place shows."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(by * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models have the same weights, bit for bit."""
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
