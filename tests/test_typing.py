"""Programs that use korbert are checked against its types."""

import subprocess
import sys
from pathlib import Path

import pytest

import korbert

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_mypy_accepts_a_program_that_uses_all(tmp_path):
    program = tmp_path / "program.py"
    program.write_bytes((ROOT / "tests" / "typed" / "uses_all.py").read_bytes())
    settings = tmp_path / "mypy.ini"  # silent: errors of an installed package are not the program's
    settings.write_text("[mypy]\nstrict = true\nfollow_imports = silent\n", encoding="utf-8")
    how = ["--config-file", str(settings), "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([sys.executable, "-m", "mypy", *how, program], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "Success: no issues found in 1 source file", done.stdout + done.stderr


def test_the_program_uses_every_public_name():
    program = (ROOT / "tests" / "typed" / "uses_all.py").read_text(encoding="utf-8")
    assert not [name for name in korbert.__all__ if f"korbert.{name}" not in program]
    assert (ROOT / "korbert" / "py.typed").is_file()
