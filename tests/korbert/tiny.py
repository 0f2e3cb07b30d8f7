"""Small encoders, and the comparison of two models, for tests."""

from typing import Any

import torch
from torch import nn

from korbert.modeling.config import EncoderConfig


def tiny_config(architecture: str = "modern", **changes: Any) -> EncoderConfig:
    sizes = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 48, "max_position_embeddings": 64}
    return EncoderConfig.model_validate({"architecture": architecture, **sizes, **changes})


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models have the same weights, bit for bit."""
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
