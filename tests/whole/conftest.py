"""A pipeline small enough to run many times: 50 documents, a model of 1 x 32."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.running import Outcome, run_here

STAGES = ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad")
RECIPE = """
seed = 1
heldout_share = 0.2
threads = 1
precision = "fp32"

[[clean.sources]]
name = "wiki"
path = "wiki.jsonl"

[[clean.sources]]
name = "reviews"
path = "reviews.jsonl"

[clean]
part_bytes = 2_048

[analyze]
part_bytes = 2_048

[vocab]
size = 1_600

[shard]
part_bytes = 4_096

[pretrain]
phases = [{ length = 64, batch_size = 8, steps = 40 }, { length = 128, batch_size = 4, steps = 20 }]
evaluate_every = 20
checkpoint_every = 5
heldout_rows = 16

[pretrain.encoder]
hidden_size = 32
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 64

[pretrain.optimizer]
learning_rate = 1e-3

[nsmc]
train = "ratings_train.txt"
test = "ratings_test.txt"
validation_share = 0.2
epochs = 2
batch_size = 8
checkpoint_every = 5

[korquad]
train = "train.json"
test = "valid.json"
max_length = 128
stride = 32
max_query_pieces = 32
epochs = 2
batch_size = 8
checkpoint_every = 2
"""


def _first_lines(source: Path, target: Path, count: int) -> None:
    with source.open(encoding="utf-8") as lines:
        target.write_text("".join(next(lines) for _ in range(count)), encoding="utf-8")


def _short_articles(source: Path, target: Path, count: int) -> None:
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    target.write_text("".join(sorted(lines, key=len)[:count]), encoding="utf-8")


def _first_articles(source: Path, target: Path, count: int) -> None:
    content = json.loads(source.read_text(encoding="utf-8"))
    target.write_text(json.dumps({**content, "data": content["data"][:count]}, ensure_ascii=False), encoding="utf-8")


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
        """In a process of its own."""
        done = subprocess.run(self.command(name, *arguments), capture_output=True, text=True, env=environment())
        assert done.returncode == code, done.stdout + done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Leads a process group of its own. Its messages go to a file in the root, for who looks into a failure."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "stderr.txt").open("a") as messages:
            return subprocess.Popen(
                self.command(name, *arguments),
                stdout=subprocess.DEVNULL,
                stderr=messages,
                text=True,
                env=environment(),
                start_new_session=True,
            )

    def record(self, stage: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / stage / "stage.json").read_text(encoding="utf-8"))
        return found

    def copy(self, root: Path, stages: Sequence[str]) -> "Whole":
        """The same recipe below another root, with some of the artifacts."""
        other = Whole(self.recipe, root)
        for stage in stages:
            shutil.copytree(self.folder / stage, other.folder / stage)
        return other


def environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "KORBERT_DATA"}


@pytest.fixture(autouse=True, scope="module")
def _own_data():
    """The recipe's folder is the data folder here, whatever the tests of real data are given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KORBERT_DATA", raising=False)
        yield


@pytest.fixture(scope="session")
def data(tmp_path_factory, sample):
    """A data folder and a recipe: 20 articles and 30 reviews, 300 NSMC rows, some of the sample's questions."""
    folder = tmp_path_factory.mktemp("data")
    _short_articles(sample / "wiki.jsonl", folder / "wiki.jsonl", 20)
    _first_lines(sample / "reviews.jsonl", folder / "reviews.jsonl", 30)
    _first_lines(sample / "nsmc" / "ratings_train.txt", folder / "ratings_train.txt", 201)
    _first_lines(sample / "nsmc" / "ratings_test.txt", folder / "ratings_test.txt", 101)
    _first_articles(sample / "korquad" / "train.json", folder / "train.json", 6)
    _first_articles(sample / "korquad" / "valid.json", folder / "valid.json", 2)
    (folder / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def whole(data, tmp_path_factory):
    """All stages, run once without a break."""
    made = Whole(data / "tiny.toml", tmp_path_factory.mktemp("whole"))
    made.run_outside("run", "--workers", "2")
    return made
