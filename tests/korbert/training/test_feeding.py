"""Rows from a thread or from worker processes, which are started for real: seconds each."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path

import numpy as np
import pytest
import torch

from korbert.errors import CorpusError, KorbertError
from korbert.pretraining import Phase, in_phases
from korbert.training.feeding import prefetch_batches
from tests.korbert.pretraining.conftest import like_a_corpus, rows_of, write_shards
from tests.korbert.training import makers
from tests.running import is_alive, wait_until


@pytest.fixture(autouse=True)
def _workers_find_makers(monkeypatch):
    """A worker's sys.path is that of its parent, which need not have this folder: pytest imports by file."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[3]), *sys.path])


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    """Two phases on real shards, of 6 and 8 steps."""
    files = write_shards(tmp_path_factory.mktemp("shards"), like_a_corpus(40, np.random.default_rng(1))).files
    short, long = (rows_of(files, length) for length in (32, 64))
    return in_phases([Phase(short, steps=6, batch_size=8), Phase(long, steps=8, batch_size=12, micro_batches=3)])


def same(one, other):
    """Whether two batches have the same names and, in the same types, the same values."""
    assert list(one) == list(other)
    for name, value in one.items():
        assert type(value) is type(other[name])
        assert torch.equal(value, other[name]) if isinstance(value, torch.Tensor) else value == other[name]
        assert not isinstance(value, torch.Tensor) or value.dtype == other[name].dtype
    return True


@pytest.mark.parametrize(("workers", "steps"), [(0, range(14)), (2, range(3, 14))])
def test_threads_and_processes_make_the_same_batches(batches, workers, steps):
    with prefetch_batches(batches, steps, workers=workers) as made:
        received = list(made)
    assert [step for step, _, _ in received] == list(steps)
    for step, micro_batches, waited in received:
        assert waited >= 0
        assert all(same(one, other) for one, other in zip(micro_batches, batches(step), strict=True))


def test_a_thread_is_one_step_ahead_and_no_further():
    made = []
    with prefetch_batches(lambda step: made.append(step) or [], range(2, 6)) as walk:
        assert next(walk)[0] == 2
        time.sleep(0.05)
        assert made == [2, 3]
        assert [step for step, _, _ in walk] == [3, 4, 5]
    assert made == [2, 3, 4, 5]


def open_files():
    """Files that this process has open, if the system tells."""
    files = Path("/proc/self/fd")
    return sorted(str(path.readlink()) for path in files.iterdir() if path.exists()) if files.exists() else []


@pytest.mark.slow
def test_an_early_end_leaves_no_process_and_no_open_file(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # of a worker, whose rows need but one
    resource_tracker.ensure_running()  # Python opens it once and keeps it
    before = open_files()
    with prefetch_batches(makers.numbered, range(3, 10**9), workers=2) as walk:
        received = [next(walk) for _ in range(5)]
        assert len(multiprocessing.active_children()) == 2
    assert not multiprocessing.active_children()
    assert [int(batch["step"]) for _, (batch,), _ in received] == [3, 4, 5, 6, 7]
    assert len({batch["pid"] for _, (batch,), _ in received} - {os.getpid()}) == 2
    assert {batch["threads"] for _, (batch,), _ in received} == {1}
    assert all(batch["blocked"] for _, (batch,), _ in received)
    assert open_files() == before


def test_workers_that_abort_as_they_exit_lose_nothing():
    with prefetch_batches(makers.aborting, range(3), workers=2) as walk:
        assert [step for step, _, _ in walk] == [0, 1, 2]
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        pytest.param(partial(makers.failing, 1), RuntimeError, "ValueError: ('a', 1)", marks=pytest.mark.slow),
        (makers.Unpicklable(), CorpusError, "part-7.arrow: gone"),
    ],
)
def test_an_error_in_a_worker_is_raised_as_it_is(make, kind, text):
    with pytest.raises(kind, match=re.escape(text)) as raised, prefetch_batches(make, range(5), workers=1) as walk:
        list(walk)
    assert type(raised.value) is kind
    assert str(raised.value) == text
    assert "In a process that makes rows: Traceback" in raised.value.__notes__[0]
    assert not multiprocessing.active_children()


def test_a_dying_worker_is_reported_in_one_line():
    line = r"^a process that makes rows was killed \(SIGKILL\): if nobody did that, memory ran out, .* resumes$"
    with (
        pytest.raises(KorbertError, match=line),
        prefetch_batches(partial(makers.dying, 3), range(9), workers=1) as walk,
    ):
        list(walk)
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_workers_die_with_a_parent_that_is_killed(tmp_path):
    program = subprocess.Popen([sys.executable, makers.__file__, tmp_path], stderr=subprocess.DEVNULL)
    pids = tmp_path / "pids"
    try:
        wait_until(pids.exists, 60, program)
        workers = [int(pid) for pid in pids.read_text().split()]
        assert all(is_alive(pid) for pid in workers)
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in workers), 4)  # without help the engine takes 5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("workers", [0, 1])
def test_batches_for_a_gpu_are_in_locked_memory(batches, workers):
    with prefetch_batches(batches, range(2), workers=workers, pin=True) as walk:
        for step, micro_batches, _ in walk:
            assert all(same(one, other) for one, other in zip(micro_batches, batches(step), strict=True))
            assert all(batch["input_ids"].is_pinned() for batch in micro_batches)
