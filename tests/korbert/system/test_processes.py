"""Processes that korbert starts."""

import subprocess
import sys

_SCRIPT = """
from korbert.system.processes import Spawning
print("once", flush=True)
process = Spawning().Process(target=print, args=("worker",))
process.start()
process.join()
print(process.exitcode, __name__)
"""


def test_a_script_is_not_run_again_by_its_workers(tmp_path):
    (tmp_path / "script.py").write_text(_SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["once", "worker", "0 __main__"], done.stderr
