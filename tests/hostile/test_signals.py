"""Each command is sent each signal at a random moment: the same command again ends where an unbroken run does.

One alone: `pytest tests/hostile -m "" -k "signals and 37"`. A failure says where its folder was kept.
"""

import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import time

import pytest

from tests.hostile.faults import fail, faults_of, leftovers_of
from tests.hostile.inputs import SEED
from tests.hostile.pipeline import READS, STAGES, digests_of, record_of
from tests.running import Outcome, left_of, run_here, start

COUNT = 30  # each of COMMANDS with each of SIGNALS
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130, signal.SIGTERM: 143}
COMMANDS = ("analyze", "pretrain", "clean", "run", "korquad", "shard", "nsmc", "vocab", "pretrain", "run")
SECONDS_FOR_WORKERS = 10  # in which processes of a command that has ended are to be gone
_MAX_SECONDS = 120


def _case(number):
    return COMMANDS[number % len(COMMANDS)], SIGNALS[number // 2 % len(SIGNALS)]


def _id(number):
    command, sent = _case(number)
    return f"{number:02d}-{command}-{sent.name}"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(COUNT), ids=_id)
def test_signals(base, tmp_path, number):
    rng = random.Random(f"{SEED}/signals/{number}")
    command, sent = _case(number)
    made = _made_by(command, rng)
    base.copy(tmp_path, READS[made[0]])
    arguments = [command, "data/tiny.toml", "--root", "artifacts", *(("--to", made[-1]) if command == "run" else ())]
    begun, outcome, told = _broken(base, tmp_path, [*arguments, "--workers", "2"], made, sent, rng)
    faults = [
        *_ended(outcome, sent, begun=begun),
        *_same_again(base, tmp_path, [*arguments, "--workers", "1"], made),
        *leftovers_of(digests_of(tmp_path)),
    ]
    if outcome.code is not None and (left := told.pop("processes", "")):
        faults.append(f"processes left after {SECONDS_FOR_WORKERS} s: {left}")
    typed = f"cd {tmp_path} && {shlex.join(['korbert', *arguments])}: {sent.name} {told['moment']}"
    ends = [f"| {line[:400]}" for line in outcome.err.splitlines()[-6:]]
    fail(faults, [typed, f"left with {outcome.code}", *ends])
    shutil.rmtree(tmp_path)


def _made_by(command, rng):
    """The stages that the command makes: of `run` two or three in a row."""
    if command != "run":
        return (command,)
    first = rng.randrange(len(STAGES) - 3)
    return STAGES[first : first + rng.randrange(2, 4)]


def _broken(base, folder, arguments, made, sent, rng):
    """Starts the command and ends it at a random moment of a random stage of it, or one time in six as it starts.

    The signal goes to the whole group, as a terminal and a scheduler send it, or to the parent alone. Returns whether a
    stage was at work by then.
    """
    stage, early, alone = rng.choice(made), rng.random() < 1 / 6, rng.random() < 0.5
    seconds = rng.uniform(0, 1) * (1.0 if early else base.seconds(stage) + 1.0)  # workers take a second to start
    partial = folder / "artifacts" / "tiny" / f"{stage}.partial"
    messages = folder / "stderr.txt"
    with messages.open("wb") as err:
        running = start(arguments, folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
    try:
        deadline = time.monotonic() + _MAX_SECONDS
        while not early and not partial.exists() and running.poll() is None and time.monotonic() < deadline:
            if (folder / "artifacts" / "tiny" / stage / "stage.json").exists():
                break
            time.sleep(0.002)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(seconds)
        begun = any((folder / "artifacts" / "tiny").glob("*.partial"))
        with contextlib.suppress(ProcessLookupError):
            if alone:
                running.send_signal(sent)
            else:
                os.killpg(running.pid, sent)
        try:
            code = running.wait(60)
        except subprocess.TimeoutExpired:
            code = None
        left = left_of(running.pid, SECONDS_FOR_WORKERS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    err_text = messages.read_text(encoding="utf-8", errors="replace")
    messages.unlink()
    whom = "to the parent" if alone else "to the group"
    told = {"moment": f"{whom} {seconds:.3f} s {'after the start' if early else f'into {stage}'}", "processes": left}
    return begun, Outcome(code, "", err_text), told


def _ended(outcome, sent, *, begun):
    """With the code of the signal and, but for a kill, one line that says so. Before it began, Python's own will do.

    Ctrl-C inside `exec` of a text, as modules do that are being imported, ends Python by the signal itself whoever
    catches it: to a shell that is 130, too.
    """
    if outcome.code is None:
        yield "did not end within 60 s of the signal"
    elif outcome.code == 0 or (outcome.code == -sent and (not begun or sent == signal.SIGKILL)):
        return  # it was done before, or had not begun
    elif outcome.code != CODES[sent] and outcome.code != -signal.SIGINT:
        yield f"left with {outcome.code}, not {CODES[sent]}"
    if begun and sent != signal.SIGKILL:
        yield from faults_of(outcome, codes=(0, 130, 143, -sent))


def _same_again(base, folder, arguments, made):
    again = run_here(arguments, folder, seconds=_MAX_SECONDS)
    if again.code != 0:
        yield f"the same command again leaves with {again.code}: {again.message[:400]}"
        return
    for stage in made:
        if record_of(folder / "artifacts" / "tiny" / stage)["digest"] != base.digest(stage):
            yield f"{stage} is another artifact than without the signal"
