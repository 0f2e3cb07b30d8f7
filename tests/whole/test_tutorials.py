"""Tutorials, run as they stand: what a page tells a reader to type works, in that order, in a clone."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli import run_command
from tests.test_readme import ROOT, parts_of

PAGES = ["docs/tutorials/classifier.md", "docs/tutorials/documents.md", "docs/tutorials/entities.md"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_tutorial_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "corpus").symlink_to(ROOT / "corpus")
    ran = []
    for language, body in parts_of(page):
        if language == "python":
            exec(compile(body, page, "exec"), {"__name__": "page"})
            ran.append(body)
        for line in body.replace("\\\n", "").splitlines() if language == "sh" else ():
            if line.startswith("korbert serve"):
                continue  # does not end
            if line.startswith("korbert "):
                assert run_command(shlex.split(line, comments=True)[1:]) == 0, f"{line}\n{capsys.readouterr().err}"
            else:
                subprocess.run(["bash", "-o", "pipefail", "-c", line], check=True)
            ran.append(line)
    assert len(ran) > 3
