"""No test reaches beyond this machine, nor does a process that a test starts."""

import socket
import subprocess
import sys

import pytest

OUTSIDE = "192.0.2.1"  # RFC 5737: an address for documentation, nobody's

_REACH = f"import socket; socket.socket().connect(({OUTSIDE!r}, 80))"
_SPAWN = f"""
import multiprocessing, socket
if __name__ == "__main__":
    socket.socket.connect = None  # the worker's own guard is meant
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(exec, ({_REACH!r}, {{}}))
"""


def test_this_process_is_kept_at_home():
    with socket.socket() as here:
        for reach in (here.connect, here.connect_ex):
            with pytest.raises(AssertionError, match=f"tried to reach .*{OUTSIDE}"):
                reach((OUTSIDE, 80))


@pytest.mark.parametrize("code", [_REACH, _SPAWN], ids=["started", "spawned by it"])
def test_started_processes_are_kept_at_home(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"AssertionError: a test tried to reach ('{OUTSIDE}', 80)" in done.stderr
