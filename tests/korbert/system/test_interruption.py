"""Signals and imports: an exception inside an import that C++ code has begun would abort the process."""

import subprocess
import sys

import pytest

_MODULE = """
import os, signal, sys
os.kill(os.getpid(), signal.{name})
for step in range({steps}):
    sum(range(100_000))
print("imported", flush=True)
"""

_COMMAND = """
import time
from korbert.system.interruption import Interrupted, handled_signals

with handled_signals(raising=True) as arrived:
    try:
        import slow
        time.sleep(60)
    except Interrupted as interrupted:
        print(interrupted.number.name, arrived().name)
time.sleep(0.2)  # no alarm is left
print("left")
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("steps", [1, 100])
def test_a_signal_waits_for_the_end_of_an_import(tmp_path, name, steps):
    assert _output(tmp_path, _MODULE.format(name=name, steps=steps)) == ["imported", f"{name} {name}", "left"]


def test_the_second_signal_ends_an_import_and_outside_of_one_the_first_raises_at_once(tmp_path):
    twice = _MODULE.format(name="SIGINT", steps=1).replace("for", "os.kill(os.getpid(), signal.SIGTERM)\nfor")
    assert _output(tmp_path, twice) == ["SIGTERM SIGINT", "left"]
    then = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('late')"
    assert _output(tmp_path, "", then) == ["SIGINT SIGINT", "left"]


def test_a_signal_of_an_import_is_noted_where_signals_are_noted_by_then(tmp_path):
    then = "with handled_signals() as noted:\n            time.sleep(0.5)\n        print('noted', noted().name)"
    noted = _output(tmp_path, _MODULE.format(name="SIGTERM", steps=1), then)
    assert noted == ["imported", "noted SIGTERM", "left"]


def _output(folder, module, then="time.sleep(60)"):
    """What the command prints that imports this module, and then does that."""
    (folder / "slow.py").write_text(module)
    (folder / "program.py").write_text(_COMMAND.replace("time.sleep(60)", then))
    return subprocess.check_output([sys.executable, folder / "program.py"], text=True, timeout=50).splitlines()
