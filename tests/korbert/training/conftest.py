"""A run of toy.py that tests of interrupted ones compare with."""

import subprocess
from pathlib import Path

import pytest

from tests.korbert.training import toy


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing interrupted, as a program of its own."""
    folder = tmp_path_factory.mktemp("straight")
    subprocess.run(toy.command(folder), check=True)
    return folder
