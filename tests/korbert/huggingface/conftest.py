"""What the tests here share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `exported`


@pytest.fixture(scope="module", autouse=True)
def _kiwi_and_cache(one_kiwi: None, remote_code_aside: None) -> None:
    """Of all tests here."""


def pytest_configure(config: pytest.Config) -> None:
    """The marks of the tests of transformers, which test_their_mixins.py runs."""
    for mark in ("accelerate_tests", "flash_attn_test", "flash_attn_3_test", "flash_attn_4_test", "torch_compile_test"):
        config.addinivalue_line("markers", f"{mark}: of transformers")
