"""A pipeline of seconds, made once, and the copies of it that cases are free to harm."""

import hashlib
import itertools
import json
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAGES = ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad")
READS = {
    "clean": (),
    "analyze": ("clean",),
    "vocab": ("clean", "analyze"),
    "shard": ("clean", "analyze", "vocab"),
    "pretrain": ("clean", "analyze", "vocab", "shard"),
    "nsmc": ("clean", "analyze", "vocab", "shard", "pretrain"),
    "korquad": ("clean", "analyze", "vocab", "shard", "pretrain"),
}  # with what those were made from, as a stage is only begun where all before it is fresh

RECIPE = """\
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
part_bytes = 16_384

[analyze]
part_bytes = 16_384

[vocab]
size = 1_550

[shard]
part_bytes = 8_192

[pretrain]
phases = [{ length = 32, batch_size = 4, steps = 4 }, { length = 64, batch_size = 2, steps = 2 }]
evaluate_every = 4
checkpoint_every = 1
heldout_rows = 8

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
epochs = 1
scratch = false
batch_size = 32
checkpoint_every = 1

[korquad]
train = "train.json"
test = "valid.json"
max_length = 128
stride = 32
max_query_pieces = 32
epochs = 1
batch_size = 8
checkpoint_every = 1
"""


def write_data(sample: Path, folder: Path) -> None:
    """Some of the shipped sample, and the recipe: 12 articles, 30 reviews, 120 NSMC rows, 2 and 1 KorQuAD articles."""
    folder.mkdir(parents=True)
    articles = (sample / "wiki.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "wiki.jsonl").write_text("".join(sorted(articles, key=len)[:12]), encoding="utf-8")
    for source, target, count in (
        ("reviews.jsonl", "reviews.jsonl", 30),
        ("nsmc/ratings_train.txt", "ratings_train.txt", 121),
        ("nsmc/ratings_test.txt", "ratings_test.txt", 41),
    ):
        with (sample / source).open(encoding="utf-8") as lines:
            (folder / target).write_text("".join(itertools.islice(lines, count)), encoding="utf-8")
    for name, count in (("train.json", 2), ("valid.json", 1)):
        content = json.loads((sample / "korquad" / name).read_text(encoding="utf-8"))
        content["data"] = content["data"][:count]
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    (folder / "tiny.toml").write_text(RECIPE, encoding="utf-8")


@dataclass(frozen=True)
class Base:
    """`data/` (files and the recipe tiny.toml) and `artifacts/tiny/`, both below one folder. Never altered."""

    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts" / "tiny"

    def copy_data(self, folder: Path) -> None:
        shutil.copytree(self.data, folder / "data")

    def copy(self, folder: Path, stages: Sequence[str]) -> None:
        """The data, and the artifacts of these stages."""
        self.copy_data(folder)
        for stage in stages:
            self.copy_stage(folder, stage)

    def copy_stage(self, folder: Path, stage: str, name: str | None = None) -> None:
        """One artifact, or what a run that was cut off has left (`analyze.partial`)."""
        shutil.copytree(self.artifacts / stage, folder / "artifacts" / "tiny" / (name or stage))

    def digest(self, stage: str) -> str:
        return record_of(self.artifacts / stage)["digest"]

    def seconds(self, stage: str) -> float:
        """How long the stage took in the process of the tests."""
        found: float = json.loads((self.artifacts / stage / "run.json").read_text(encoding="utf-8"))["seconds"]
        return found


def record_of(artifact: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((artifact / "stage.json").read_text(encoding="utf-8"))
    return found


def look(folder: Path) -> dict[str, str]:
    """Every entry below a folder, by its relative name: what it is, and a digest of what it holds. Opens no pipe."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            told = f"link to {path.readlink()}"
        elif stat.S_ISREG(mode):
            told = hashlib.sha1(path.read_bytes()).hexdigest()
        else:
            told = f"{stat.S_IFMT(mode):o}"
        found[str(path.relative_to(folder))] = told
    return found
