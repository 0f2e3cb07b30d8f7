"""Programs in new processes, for tests that end them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def started(folder: Path, text: str, **options: Any) -> subprocess.Popen[str]:
    """A new process of a program with this text, which imports what this process can import."""
    program = folder / "program.py"
    program.write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen([sys.executable, str(program)], env=environment, text=True, **options)
