"""What the tests here share."""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kiwipiepy
import pytest

KIWI = cache(kiwipiepy.Kiwi)
sys.path.insert(0, str(Path(__file__).parent))  # `exported`


@pytest.fixture(scope="module", autouse=True)
def _kiwi_and_cache(remote_code_aside: None) -> Iterator[None]:
    """The file of an exported folder loads a Kiwi of its own, too: here those with the same options share one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kiwipiepy, "Kiwi", KIWI)
        yield
