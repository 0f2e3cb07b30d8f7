"""A run of toy.py that tests of interrupted ones compare with."""

from pathlib import Path

import pytest

from tests.korbert.training import toy


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("straight")
    toy.train_and_save(folder)
    return folder
