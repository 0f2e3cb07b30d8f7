"""What the tests here share."""

import functools
import sys
from collections.abc import Iterator

import kiwipiepy
import pytest
import torch
import transformers

_shared_kiwi = functools.cache(kiwipiepy.Kiwi)


@pytest.fixture(scope="module", autouse=True)
def _one_kiwi() -> Iterator[None]:
    """Each tokenizer loads a Kiwi of its own, in seconds: here those with the same options share one.

    For a module at a time: modules of other folders may run in between, and add words to a Kiwi of their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kiwipiepy, "Kiwi", _shared_kiwi)
        yield


@pytest.fixture(scope="package", autouse=True)
def _cache_of_remote_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """transformers copies code that it trusts into a cache of the user: not in tests."""
    with pytest.MonkeyPatch.context() as patch:
        cache = str(tmp_path_factory.mktemp("modules"))
        patch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", cache)
        patch.setattr(sys, "path", [*sys.path, cache])
        yield


@pytest.fixture(scope="package", autouse=True)
def _one_thread() -> Iterator[None]:
    """Models of this size are faster on one thread, and far faster where other jobs run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
