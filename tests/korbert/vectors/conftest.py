"""What the tests here share."""

from collections.abc import Callable

import pytest
import torch

from korbert.model import Model
from korbert.modeling import EncoderConfig, PretrainingModel
from korbert.tokenization import Tokenizer


@pytest.fixture(scope="module", autouse=True)
def _kiwi_and_cache(one_kiwi: None, remote_code_aside: None) -> None:
    """Of all tests here."""


@pytest.fixture(scope="session")
def config(tiny_config: Callable[..., EncoderConfig]) -> EncoderConfig:
    """Three layers of 16; weights large enough that texts differ."""
    return tiny_config(num_hidden_layers=3, max_position_embeddings=32, initializer_range=0.5)


@pytest.fixture
def encoder(config: EncoderConfig, tiny_tokenizer: Tokenizer) -> Model:
    """A new model in use; the same one in every test."""
    return Model(PretrainingModel(config, torch.Generator().manual_seed(1)), tiny_tokenizer)
