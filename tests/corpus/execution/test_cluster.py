"""The cases of cluster_cases.py, in a process of its own: Ray ends the one whose node it loses, and pytest with it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")

CASES = Path(__file__).with_name("cluster_cases.py")


@pytest.mark.slow
def test_units_run_on_a_ray_cluster():
    ended = subprocess.run([sys.executable, "-m", "pytest", "-q", CASES], capture_output=True, text=True, timeout=550)
    assert ended.returncode == 0, ended.stdout + ended.stderr
