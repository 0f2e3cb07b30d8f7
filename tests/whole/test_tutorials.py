"""Tutorials, run as they stand: what a page tells a reader to type works, in that order, in a clone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import _FENCE, ROOT, text_of

PAGES = ["docs/tutorials/classifier.md", "docs/tutorials/documents.md", "docs/tutorials/entities.md"]
ENDLESS = ("korbert serve",)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_tutorial_run(page, tmp_path):
    (tmp_path / "corpus").symlink_to(ROOT / "corpus")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = 0
    for language, body in _FENCE.findall(text_of(page)):
        if language == "python":
            commands = [[sys.executable, "-c", body]]
        elif language == "sh":
            lines = body.replace("\\\n", "").splitlines()
            commands = [["bash", "-c", f"set -o pipefail; {line}"] for line in lines if not line.startswith(ENDLESS)]
        else:
            continue
        for command in commands:
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{command[-1]}\n{done.stderr}"
            ran += 1
    assert ran > 3
