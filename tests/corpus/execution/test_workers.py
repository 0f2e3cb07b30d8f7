"""Units that kill or hang their worker, and workers whose parent is killed."""

import os
import signal
import subprocess
import time

import faults
import pytest
from programs import started

from korbert.corpus.execution.workers import run_units
from korbert.errors import CorpusError, KorbertError
from tests.running import is_alive


def test_few_units_are_taken_ahead():
    taken = []
    units = ((taken.append(number), (number,))[1] for number in range(50))
    outcomes = run_units(faults.double, units, workers=1)
    next(outcomes)
    assert len(taken) <= 5
    outcomes.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "seconds", "reason"),
    [(faults.dies_on_seven, None, "crashed"), (faults.hangs_on_seven, 1.0, "timeout")],
)
def test_a_unit_that_ends_its_worker_is_halved_to_the_culprit(function, seconds, reason):
    deadline = None if seconds is None else lambda unit: seconds
    outcomes = run_units(function, [(1, 2), (5, 6, 7, 8, 9), (10,)], workers=2, split=faults.halves, deadline=deadline)
    by_unit = {outcome.unit: outcome for outcome in outcomes}
    assert by_unit[1, 2].results == [(1, 2)]
    halved = by_unit[5, 6, 7, 8, 9]
    assert halved.halved
    assert [number for result in halved.results for number in result] == [5, 6, 8, 9]
    assert [(lost.unit, lost.reason) for lost in halved.lost] == [((7,), reason)]


def test_a_unit_whose_worker_died_once_is_run_again(tmp_path):
    units = [(str(tmp_path / "mark"), number) for number in range(4)]
    outcomes = list(run_units(faults.dies_once, units, workers=2, split=lambda unit: (unit, (unit[0], -1))))
    assert sorted(result for outcome in outcomes for result in outcome.results) == [-1, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("function", "options", "error", "message"),
    [
        (faults.dies_on_seven, {}, KorbertError, r"a worker died .*code 9"),  # nothing says how to halve it
        (faults.refuses, {"split": faults.halves, "deadline": lambda unit: 60}, CorpusError, "unit 7: 쓸 수 없다"),
        (faults.loses_its_connection, {"split": faults.halves}, TimeoutError, "Connection timed out"),
        (faults.double, {"initializer": faults.fails_to_start}, RuntimeError, "no Kiwi here"),
        pytest.param(faults.double, {"initializer": faults.dies_at_start}, KorbertError, "the worker processes ended",
                     marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_errors_of_workers_functions_and_initializers_are_raised(function, options, error, message):
    with pytest.raises(error, match=message):
        list(run_units(function, [(7,)], workers=1, **options))


def test_workers_die_with_a_parent_killed_alone(tmp_path):
    path = tmp_path / "written"
    with _program(tmp_path, path, stderr=subprocess.DEVNULL) as parent:
        writers = _wait_for_writers(path)
        parent.send_signal(signal.SIGKILL)
    time.sleep(0.05)
    size = path.stat().st_size
    time.sleep(0.5)
    assert path.stat().st_size == size
    assert not any(is_alive(pid) for pid in writers)


def test_ctrl_c_in_a_terminal_ends_workers_silently(tmp_path):
    path = tmp_path / "written"
    with _program(tmp_path, path, start_new_session=True, stderr=subprocess.PIPE) as parent:
        _wait_for_writers(path)
        os.killpg(parent.pid, signal.SIGINT)
        _, errors = parent.communicate(timeout=30)
    assert errors.count("KeyboardInterrupt") == 1
    size = path.stat().st_size
    time.sleep(0.3)
    assert path.stat().st_size == size


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_while_workers_start_ends_them_silently(tmp_path, number):
    """The signal arrives before the first worker has received its data, which it reads while the pool is stopped."""
    ended = _run_program(
        tmp_path,
        "from pebble.pool import process as pool",
        "",
        "start, stop = util.spawnv_passfds, pool.stop_process",
        "",
        "def start_and_signal(path, args, fds):",
        "    pid = start(path, args, fds)",
        "    if any('spawn_main' in str(arg) for arg in args):",
        "        os.kill(pid, signal.SIGSTOP)",
        "        util.spawnv_passfds = start",
        f"        os.kill(os.getpid(), signal.{number.name})",
        "        time.sleep(0.5)  # until the other thread has taken it",
        "    return pid",
        "",
        "def let_start_and_stop(worker):",
        "    os.kill(worker.pid, signal.SIGCONT)",
        "    time.sleep(1)",
        "    stop(worker)",
        "",
        "if __name__ == '__main__':",
        "    util.spawnv_passfds, pool.stop_process = start_and_signal, let_start_and_stop",
        "    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()  # does not block the signal",
        "    run(faults.hangs_on_seven, (7,))",
    )
    assert ended == (number + 100, "")


def _run_program(folder, *lines):
    """Runs a program of those lines and ends it by a signal. Its `run` gives two units to two workers."""
    before = (
        "import faults, os, signal, sys, threading, time",
        "from multiprocessing import util",
        "from korbert.corpus.execution.workers import run_units",
        "from korbert.system.interruption import Interrupted, handled_signals",
        "",
        "def run(function, unit):",
        "    try:",
        "        with handled_signals(raising=True):",
        "            list(run_units(function, [unit] * 2, workers=2))",
        "    except Interrupted as error:",
        "        sys.exit(error.number + 100)",
        "",
    )
    with started(folder, "\n".join([*before, *lines, ""]), stderr=subprocess.PIPE) as process:
        _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def _program(folder, path, **options):
    """A new process with two workers that write for a minute."""
    program = (
        "import faults; from korbert.corpus.execution.workers import run_units\n"
        "if __name__ == '__main__':\n"
        f"    list(run_units(faults.append_slowly, [{str(path)!r}] * 2, workers=2))\n"
    )
    return started(folder, program, **options)


def _wait_for_writers(path):
    give_up = time.monotonic() + 60
    writers = set()
    while len(writers) < 2 and time.monotonic() < give_up:
        time.sleep(0.05)
        writers = set(path.read_text().split()) if path.exists() else set()
    assert len(writers) == 2
    return writers
