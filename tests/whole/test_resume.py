"""kill -9 of the parent alone, and the same command at once after it: the same artifact, and nothing done twice."""

import contextlib
import json
import signal
import time
from typing import NamedTuple

import pytest

from tests.whole.conftest import STAGES

OF_PARTS = {"clean", "analyze", "vocab", "shard"}
SLOW = {"clean", "vocab", "shard", "nsmc", "korquad"}  # the fast siblings: a stage of parts, and one that trains


class Stamp(NamedTuple):
    """What shows whether a file was written again."""

    inode: int
    changed_ns: int
    content: bytes


def _stamp(path):
    stat = path.stat()
    return Stamp(stat.st_ino, stat.st_mtime_ns, path.read_bytes())


def _finished(partial):
    """Records of finished parts and of checkpoints, and the files that they speak for."""
    found = {}
    for record in (*partial.rglob("part-*.json"), *partial.rglob("step-????????/record.json")):
        files = json.loads(record.read_text(encoding="utf-8")).get("files", {})
        for path in (record, *(partial / name for name in files)):
            found[path.relative_to(partial)] = _stamp(path)
    return found


def _has_parts(partial):
    return len(list(partial.glob("work/*/part-*.json"))) >= 2


def _has_checkpoint(partial):
    with contextlib.suppress(FileNotFoundError):  # a folder may be renamed while it is looked into
        return bool(list(partial.rglob("step-????????")))
    return False


def _kill(made, command, stage, ready, seconds=0):
    """Kills the command that many seconds after its stage is ready for it; False where the stage was done by then."""
    partial, final = made.folder / f"{stage}.partial", made.folder / stage
    deadline = time.monotonic() + 120
    with made.start(*command) as running:
        try:
            while not ready(partial) and not final.exists():
                assert running.poll() is None, f"{stage} failed: see {made.root / 'stderr.txt'}"
                assert time.monotonic() < deadline, f"{stage} never got there"
                time.sleep(0.002)
            time.sleep(seconds)
            if final.exists():
                return False
            assert running.poll() is None
        finally:
            running.kill()
    assert running.returncode == -signal.SIGKILL
    return partial.exists() and not final.exists()  # else it was done in that instant


def _run_and_watch(made, stage, finished):
    """Runs the stage; returns those of the finished files that were never written again. Scratch is gone at the end."""
    untouched = dict(finished)

    def look(folder):
        for path, stamp in list(untouched.items()):
            with contextlib.suppress(FileNotFoundError):
                if _stamp(folder / path) != stamp:
                    del untouched[path]

    with made.start(stage) as again:
        while again.poll() is None:
            look(made.folder / f"{stage}.partial")
            time.sleep(0.002)
    assert again.returncode == 0
    look(made.folder / stage)
    return untouched


@pytest.mark.parametrize("stage", [pytest.param(s, marks=pytest.mark.slow if s in SLOW else ()) for s in STAGES])
def test_killed_and_run_again(whole, tmp_path, stage):
    made = whole.copy(tmp_path, STAGES[: STAGES.index(stage)])
    assert _kill(made, (stage,), stage, _has_parts if stage in OF_PARTS else _has_checkpoint)
    before = _finished(made.folder / f"{stage}.partial")
    assert before
    assert _run_and_watch(made, stage, before) == before
    assert made.record(stage)["digest"] == whole.record(stage)["digest"]
    assert json.loads((made.folder / stage / "run.json").read_text(encoding="utf-8"))["resumed"]
    if stage == "pretrain":
        lines = (made.folder / stage / "timing.jsonl").read_text(encoding="utf-8").splitlines()
        starts = [line["step"] for line in map(json.loads, lines) if line["kind"] == "start"]
        assert len(starts) == 2
        assert starts[1] > 0
