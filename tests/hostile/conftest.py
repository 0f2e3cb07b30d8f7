"""The pipeline that all cases harm a copy of, and what its commands are spared here."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.pipeline import READS, Base, digests_of, write_data
from tests.running import own_data, quick, run_here


@pytest.fixture(autouse=True, scope="module")
def _here():
    """Of these modules alone: what `quick` puts in place of real things would kill other tests in this process."""
    with quick(), own_data():
        yield


@pytest.fixture(scope="session")
def base(tmp_path_factory, sample):
    """All stages, run once without a break."""
    made = Base(tmp_path_factory.mktemp("base"))
    write_data(sample, made.data)
    with quick(), own_data():
        done = run_here(("run", "data/tiny.toml", "--workers", "1"), made.folder, seconds=300)
    assert done.code == 0, done.err
    before = digests_of(made.folder)
    yield made
    after = digests_of(made.folder)
    assert {name: after.get(name) for name in before} == before, "a case has harmed what all cases share"


@pytest.fixture(scope="session")
def base_with_partials(base):
    """The same, and beside it what runs that were cut off halfway have left: `analyze.partial` and the like."""
    parts, step = dict.fromkeys(("clean", "analyze"), "part-00001.json"), "step-00000002"
    with quick(), own_data():
        for stage, last in (*parts.items(), ("pretrain", "step-00000004"), ("nsmc", step), ("korquad", step)):
            _cut_off(base, stage, last)
    return base


def _cut_off(base: Base, stage: str, last: str) -> None:
    """A run of the stage that ends as by Ctrl-C once that name is in its place."""
    folder = base.folder / "cut off"
    base.copy(folder, READS[stage])
    with pytest.MonkeyPatch.context() as patch:
        for name in ("rename", "replace"):
            patch.setattr(Path, name, _ending(getattr(Path, name), last))
        run_here((stage, "data/tiny.toml", "--root", "artifacts", "--workers", "1"), folder)
    partial = folder / "artifacts" / "tiny" / f"{stage}.partial"
    assert list(partial.rglob(last)), stage
    assert not partial.with_suffix("").exists(), stage
    shutil.move(partial, base.artifacts)
    shutil.rmtree(folder)


def _ending(move: Callable[[Path, Path], Path], last: str) -> Callable[[Path, Path], Path]:
    def ended(path: Path, target: Path) -> Path:
        moved = move(path, target)
        if Path(target).name == last:
            raise KeyboardInterrupt
        return moved

    return ended
