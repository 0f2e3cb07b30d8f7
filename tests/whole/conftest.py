"""A pipeline small enough to run many times: 50 documents, a model of 1 x 32."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests.running import Outcome, own_data, run_here, units_here
from tests.tiny_recipe import write_data

MODEL = "before/pretrain"  # below the data of `changed`: an artifact of tiny.toml
STAGES = ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad")


@dataclass(frozen=True)
class Whole:
    """One recipe below one root."""

    recipe: Path
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / self.recipe.stem

    def command(self, name: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "korbert", name, str(self.recipe), "--root", str(self.root), *arguments]

    def run(self, name: str, *arguments: str, code: int | None = 0) -> Outcome:
        """In the process of the tests, which takes seconds less. code: None for any failure."""
        done = run_here(self.command(name, *arguments)[3:], Path.cwd(), seconds=300)
        assert done.code == code if code is not None else done.code, done.out + done.err
        return done

    def run_outside(self, name: str, *arguments: str, code: int = 0) -> Outcome:
        done = subprocess.run(self.command(name, *arguments), capture_output=True, text=True, env=environment())
        assert done.returncode == code, done.stdout + done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Leads a process group of its own. Its messages go to a file in the root, for who looks into a failure."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "stderr.txt").open("a") as messages:
            streams = {"stdout": subprocess.DEVNULL, "stderr": messages, "text": True}
            command = self.command(name, *arguments)
            return subprocess.Popen(command, env=environment(), start_new_session=True, **streams)

    def record(self, stage: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / stage / "stage.json").read_text(encoding="utf-8"))
        return found

    def copy(self, root: Path, stages: Sequence[str]) -> "Whole":
        """The same recipe below another root, with some of the artifacts."""
        return self.given(Whole(self.recipe, root), stages)

    def given(self, other: "Whole", stages: Sequence[str]) -> "Whole":
        """The other one, with copies of some of these artifacts."""
        for stage in stages:
            shutil.copytree(self.folder / stage, other.folder / stage)
        return other

    def changed(self, folder: Path, changes: Iterable[tuple[str, str]], stages: Sequence[str]) -> "Whole":
        """A recipe with these texts replaced, over a copy of the data that holds the model of this one, too."""
        shutil.copytree(self.recipe.parent, folder / "data")
        shutil.copytree(self.folder / "pretrain", folder / "data" / MODEL)
        text = self.recipe.read_text(encoding="utf-8")
        for before, after in changes:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        (folder / "data" / "changed.toml").write_text(text, encoding="utf-8")
        return self.given(Whole(folder / "data" / "changed.toml", folder / "artifacts"), stages)


def environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "KORBERT_DATA"}


@pytest.fixture(autouse=True, scope="module")
def _here():
    """The recipe's folder is the data folder, and commands of this process start no workers."""
    with own_data(), units_here():
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """One folder for all processes of pytest-xdist."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def data(shared_folder, sample):
    """A data folder and a recipe: 20 articles and 30 reviews, 300 NSMC rows, some of the sample's questions."""
    with FileLock(shared_folder / "data.lock"):
        if (shared_folder / "data" / "tiny.toml").exists():
            return shared_folder / "data"
        return write_data(sample, shared_folder / "data").parent


@pytest.fixture(scope="session")
def whole(shared_folder, data):
    """All stages, run once without a break; the process of pytest-xdist that comes second finds them fresh."""
    made = Whole(data / "tiny.toml", shared_folder / "whole")
    with FileLock(shared_folder / "whole.lock"), own_data(), units_here():
        if not made.root.exists():
            made.run("run", "--workers", "1")
    return made
