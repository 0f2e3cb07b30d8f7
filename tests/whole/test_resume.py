"""kill -9 of the parent alone, and the same command at once after it: the same artifact, and nothing done twice."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.whole.conftest import Whole

STAGES = ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad")
SLOW = {"clean", "vocab", "shard", "nsmc", "korquad"}  # the fast siblings: a stage of parts, and one that trains


def _finished(partial: Path) -> dict[Path, tuple[int, int]]:
    """Records of finished parts and rows, with what shows whether a file was written again."""
    found = {}
    for path in (partial / "work").rglob("*.json"):
        stat = path.stat()
        found[path.relative_to(partial)] = (stat.st_ino, stat.st_mtime_ns)
    return found


def _has_parts(partial: Path) -> bool:
    return len(_finished(partial)) >= 2


def _has_checkpoint(partial: Path) -> bool:
    checkpoints = partial / "checkpoints"
    return checkpoints.is_dir() and any(path.is_file() for path in checkpoints.rglob("*") if ".tmp" not in path.name)


READY: dict[str, Callable[[Path], bool]] = {
    "clean": _has_parts,
    "analyze": _has_parts,
    "vocab": _has_parts,
    "shard": _has_parts,
    "pretrain": _has_checkpoint,
    "nsmc": _has_checkpoint,
    "korquad": _has_checkpoint,
}


def _kill_when(made: Whole, stage: str, ready: Callable[[Path], bool]) -> None:
    partial = made.folder / f"{stage}.partial"
    running = made.start(stage)
    deadline = time.monotonic() + 120
    try:
        while not ready(partial):
            assert running.poll() is None, running.stderr and running.stderr.read()
            assert time.monotonic() < deadline, f"{stage} never got there"
            time.sleep(0.002)
    finally:
        running.kill()
        running.wait()
    assert not (made.folder / stage).exists()


@pytest.mark.parametrize("stage", [pytest.param(s, marks=pytest.mark.slow if s in SLOW else ()) for s in STAGES])
def test_killed_and_run_again(whole: Whole, tmp_path: Path, stage: str) -> None:
    made = whole.copy(tmp_path, STAGES[: STAGES.index(stage)])
    _kill_when(made, stage, READY[stage])
    partial = made.folder / f"{stage}.partial"
    before = _finished(partial)
    again = made.start(stage)
    untouched = dict(before)
    while again.poll() is None:  # scratch is gone at the end, so look while it works
        for path, stamp in list(untouched.items()):
            try:
                stat = (partial / path).stat()
            except FileNotFoundError:
                continue
            if (stat.st_ino, stat.st_mtime_ns) != stamp:
                del untouched[path]
        time.sleep(0.002)
    assert again.returncode == 0, again.stderr and again.stderr.read()
    assert untouched == before
    assert made.record(stage)["digest"] == whole.record(stage)["digest"]
    if stage == "pretrain":
        starts = [json.loads(line) for line in (made.folder / stage / "timing.jsonl").read_text().splitlines()]
        assert [line["step"] for line in starts if line["kind"] == "start"][-1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 2.0, 4.0, 8.0, 12.0, 16.0])
def test_killed_at_any_moment(whole: Whole, tmp_path: Path, seconds: float) -> None:
    made = Whole(whole.recipe, tmp_path)
    running = made.start("run")
    time.sleep(seconds)
    running.kill()
    running.wait()
    made.run("run")
    for stage in STAGES:
        assert made.record(stage)["digest"] == whole.record(stage)["digest"], stage
