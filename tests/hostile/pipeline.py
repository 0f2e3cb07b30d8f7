"""A pipeline of seconds, made once, and the copies of it that cases are free to harm."""

import hashlib
import json
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import tiny_recipe

STAGES = ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad")
READS = {
    "clean": (), "analyze": ("clean",), "vocab": ("clean", "analyze"), "shard": ("clean", "analyze", "vocab"),
    "pretrain": ("clean", "analyze", "vocab", "shard"), "nsmc": ("clean", "analyze", "vocab", "shard", "pretrain"),
    "korquad": ("clean", "analyze", "vocab", "shard", "pretrain"),
}  # fmt: skip

_QUICKER = {  # than the recipe of tests/whole
    "part_bytes = 2_048": "part_bytes = 16_384",
    "part_bytes = 4_096": "part_bytes = 8_192",
    "size = 1_600": "size = 1_550",
    "length = 64, batch_size = 8, steps = 40": "length = 32, batch_size = 4, steps = 4",
    "length = 128, batch_size = 4, steps = 20": "length = 64, batch_size = 2, steps = 2",
    "batch_size = 8\ncheckpoint_every = 5": "batch_size = 32\ncheckpoint_every = 1\nscratch = false",
    "epochs = 2": "epochs = 1",
    "evaluate_every = 20": "evaluate_every = 4",
    "checkpoint_every = 5": "checkpoint_every = 1",
    "checkpoint_every = 2": "checkpoint_every = 1",
    "heldout_rows = 16": "heldout_rows = 8",
}  # fmt: skip


def write_data(sample: Path, folder: Path) -> None:
    """Less of the sample than there: 12 articles, 30 reviews, 120 NSMC rows, 2 and 1 KorQuAD articles."""
    recipe = tiny_recipe.RECIPE
    for usual, quicker in _QUICKER.items():
        assert usual in recipe
        recipe = recipe.replace(usual, quicker)
    tiny_recipe.write_data(sample, folder, recipe, articles=12, ratings=(120, 40), questions=(2, 1))


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


def digests_of(folder: Path) -> dict[str, str]:
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
