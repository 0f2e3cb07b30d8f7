"""kill -9 of the parent alone, and the same command at once after it: the same artifact, and nothing done twice."""

import contextlib
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
    return any(not path.parent.name.endswith(".partial") for path in partial.rglob("step-*/record.json"))


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
    deadline = time.monotonic() + 120
    with made.start(stage) as running:
        try:
            while not ready(partial):
                assert running.poll() is None, f"{stage} ended before it could be killed"
                assert time.monotonic() < deadline, f"{stage} never got there"
                time.sleep(0.002)
        finally:
            running.kill()
    assert not (made.folder / stage).exists()


def _run_and_watch(made: Whole, stage: str, finished: dict[Path, tuple[int, int]]) -> dict[Path, tuple[int, int]]:
    """Runs the stage; returns those of the finished files that were never written again. Scratch is gone at the end."""
    untouched = dict(finished)
    partial = made.folder / f"{stage}.partial"
    with made.start(stage) as again:
        while again.poll() is None:
            for path, stamp in list(untouched.items()):
                with contextlib.suppress(FileNotFoundError):
                    stat = (partial / path).stat()
                    if (stat.st_ino, stat.st_mtime_ns) != stamp:
                        del untouched[path]
            time.sleep(0.002)
    assert again.returncode == 0
    return untouched


@pytest.mark.parametrize("stage", [pytest.param(s, marks=pytest.mark.slow if s in SLOW else ()) for s in STAGES])
def test_killed_and_run_again(whole: Whole, tmp_path: Path, stage: str) -> None:
    made = whole.copy(tmp_path, STAGES[: STAGES.index(stage)])
    _kill_when(made, stage, READY[stage])
    before = _finished(made.folder / f"{stage}.partial")
    assert _run_and_watch(made, stage, before) == before
    assert made.record(stage)["digest"] == whole.record(stage)["digest"]
    if stage == "pretrain":
        starts = [json.loads(line) for line in (made.folder / stage / "timing.jsonl").read_text().splitlines()]
        assert [line["step"] for line in starts if line["kind"] == "start"][-1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 2.0, 4.0, 8.0, 12.0, 16.0])
def test_killed_at_any_moment(whole: Whole, tmp_path: Path, seconds: float) -> None:
    made = Whole(whole.recipe, tmp_path)
    with made.start("run") as running:
        time.sleep(seconds)
        running.kill()
    made.run("run")
    for stage in STAGES:
        assert made.record(stage)["digest"] == whole.record(stage)["digest"], stage
