"""What the tests here share."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _cache(remote_code_aside: None) -> None:
    """Of all tests here."""
