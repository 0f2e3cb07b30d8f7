"""What the tests here share."""

import functools
import sys
from collections.abc import Iterator
from typing import Any

import kiwipiepy
import pytest
import torch
import transformers

from korbert.modeling import EncoderConfig, PretrainingModel
from korbert.tokenization import Tokenizer
from korbert.vectors import TextEncoder

_shared_kiwi = functools.cache(kiwipiepy.Kiwi)


@pytest.fixture(scope="package", autouse=True)
def _cache_of_remote_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """transformers copies code that it trusts into a cache of the user: not in tests."""
    with pytest.MonkeyPatch.context() as patch:
        cache = str(tmp_path_factory.mktemp("modules"))
        patch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", cache)
        patch.setattr(sys, "path", [*sys.path, cache])
        yield


@pytest.fixture(scope="module", autouse=True)
def _one_kiwi() -> Iterator[None]:
    """Each tokenizer loads a Kiwi of its own, in seconds: here those with the same options share one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kiwipiepy, "Kiwi", _shared_kiwi)
        yield


@pytest.fixture(scope="package", autouse=True)
def _one_thread() -> Iterator[None]:
    """Models of this size are faster on one thread, and far faster where other jobs run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_config(tiny_tokenizer: Tokenizer) -> EncoderConfig:
    """Three layers of 16; weights large enough that texts differ."""
    return EncoderConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.5,
    )


@pytest.fixture
def encoder(tiny_config: EncoderConfig, tiny_tokenizer: Tokenizer) -> TextEncoder[Any]:
    """A new model in use; the same one in every test."""
    return TextEncoder(PretrainingModel(tiny_config, torch.Generator().manual_seed(1)), tiny_tokenizer)
