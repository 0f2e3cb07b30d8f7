"""What the tests of korbert share."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Models of this size are faster on one thread, and far faster where other jobs run.

    PyTorch is not loaded for this: modules that use it have loaded it.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def remote_code_aside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """transformers copies code that it trusts into a cache of the user: not in tests."""
    import transformers

    with pytest.MonkeyPatch.context() as patch:
        cache = str(tmp_path_factory.mktemp("modules"))
        patch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", cache)
        patch.setattr(sys, "path", [*sys.path, cache])
        yield
