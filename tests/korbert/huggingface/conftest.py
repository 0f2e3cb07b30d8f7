"""What the tests here share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `exported`


@pytest.fixture(scope="module", autouse=True)
def _kiwi_and_cache(one_kiwi: None, remote_code_aside: None) -> None:
    """Of all tests here."""
