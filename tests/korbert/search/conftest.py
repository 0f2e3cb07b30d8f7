"""What the tests here share."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _kiwi_and_cache(one_kiwi: None, remote_code_aside: None) -> None:
    """Of all tests here."""
