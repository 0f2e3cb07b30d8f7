"""SIGKILL at any moment of writing an index: what was committed is there, and nothing is there by half."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

from korbert.search import database
from korbert.search.owners import read_owners
from korbert.search.words import word_scores

SIZE, TEXTS = 64, 40

# Reads numbers: for each one a writer begins with it, in a process of its own. Modules are loaded once.
_WRITERS = f"""
import os, sys
from pathlib import Path
import numpy as np
from korbert.search import database
from korbert.search.texts import delete, insert, read_stored

def write(first):
    database.create(folder, {{"size": {SIZE}}})
    for number in range(first, first + 100_000):
        ids = [f"{{number}}-{{text}}" for text in range({TEXTS})]
        vector = np.full({SIZE}, number, np.float32)
        places = [(0, 1, 0, 2), (1, 2, 1, 3)]
        with database.writing(folder) as file:
            if number % 3 == 0:  # the one before goes
                rows = read_stored(file, [f"{{number - 1}}-{{text}}" for text in range({TEXTS})])
                delete(file, [row[0] for row in rows.values()])
            insert(file, [(id, "{{}}", id, ["all", f"t{{number}}", id], places, [vector, vector]) for id in ids])
        os.write(1, f"{{number}}\\n".encode())  # a line is whole or absent, where print may write it in two

folder = Path(sys.argv[1])
for line in iter(sys.stdin.readline, ""):
    process = os.fork()
    if process == 0:
        print(os.getpid(), flush=True)
        write(int(line))
    _, status = os.waitpid(process, 0)
    print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture
def writers(tmp_path):
    command = [sys.executable, "-c", _WRITERS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


def killed_after(writers, first, commits, delay):
    """Kills a writer in a commit after this many; returns the number of the last commit that it reported."""
    writers.stdin.write(f"{first}\n")
    writers.stdin.flush()
    writer = int(next(writers.stdout))
    told = [next(writers.stdout) for _ in range(commits)]
    time.sleep(delay)
    os.kill(writer, signal.SIGKILL)
    for line in writers.stdout:
        if line.startswith("ended"):
            break
        told.append(line)
    assert line == f"ended {-signal.SIGKILL}\n"
    return int(told[-1])


def check(folder, last):
    """Asserts that the index is whole up to this commit or the next one; returns the last one that is there."""
    with database.reading(folder) as file:
        rows = file.execute("SELECT number, id FROM texts ORDER BY number").fetchall()
        last = max(last, int(rows[-1][1].partition("-")[0]))
        expected = [number for number in range(last + 1) if number % 3 != 2 or number == last]
        assert [id for _, id in rows] == [f"{number}-{text}" for number in expected for text in range(TEXTS)]
        passages = file.execute("SELECT number, text FROM passages ORDER BY number").fetchall()
        assert [text for _, text in passages] == [number for number, _ in rows for _ in range(2)]
        vectors = file.execute("SELECT number, vector FROM vectors ORDER BY number").fetchall()
        ids = dict(rows)
        for (number, text), (own, vector) in zip(passages, vectors, strict=True):
            assert (own, set(np.frombuffer(vector, np.float32))) == (number, {int(ids[text].partition("-")[0])})
        owners = read_owners(file)
        assert np.flatnonzero(word_scores(file, ["all"], owners)).tolist() == [number for number, _ in passages]
        for number in {*expected[-3:], last - 1}:
            of_term = word_scores(file, [f"t{number}"], owners)
            assert np.count_nonzero(of_term) == 2 * TEXTS * (number in expected)
        assert (database.read_meta(file, "texts"), database.read_meta(file, "length")) == (len(rows), 4 * len(rows))
    with closing(sqlite3.connect(folder / database.FILE)) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return last


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_is_lost_or_half_after_kills(writers, tmp_path, kills):
    rng = random.Random(kills)
    last = check(tmp_path, killed_after(writers, 0, 2, 0.01))
    for _ in range(kills - 1):
        reported = killed_after(writers, last + 1, rng.randint(1, 3), rng.random() * 0.05)
        now = check(tmp_path, reported)
        assert reported <= now <= reported + 1
        last = now
