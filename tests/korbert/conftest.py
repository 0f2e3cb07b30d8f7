"""What the tests of korbert share."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def config(tiny_config: Callable[..., Any]) -> Any:
    """The config of an encoder of three layers of 16, with weights large enough that texts differ."""
    return tiny_config(num_hidden_layers=3, max_position_embeddings=32, initializer_range=0.5)


@pytest.fixture
def encoder(config: Any, tiny_tokenizer: Any) -> Any:
    """A new korbert.Model for vectors and search; the same one in every test."""
    import torch

    from korbert.model import Model
    from korbert.modeling import PretrainingModel

    return Model(PretrainingModel(config, torch.Generator().manual_seed(1)), tiny_tokenizer)
