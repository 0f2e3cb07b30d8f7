"""200 altered files of artifacts, of work under way and of models: what reads them refuses, or gives what it gave.

One alone: `pytest tests/hostile -m "" -k "flips and 137"`. A failure says where its folder was kept.
"""

import json
import random
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from korbert.system.scratch import MARK
from tests.hostile.faults import fail, faults_of
from tests.hostile.inputs import MODELS, SEED
from tests.hostile.mutations import flip, zeros
from tests.hostile.pipeline import READS, STAGES, Base, record_of
from tests.running import run_here, run_outside

COUNT = 200

# What is harmed, in turn.
KINDS = ("data", "record", "model", "checkpoint", "data", "beside", "part", "data", "record", "model", "checkpoint",
         "data", "plan", "data", "data", "model", "record", "checkpoint", "data", "model")  # fmt: skip

NEXT = {  # what builds on it
    "clean": ("analyze",), "analyze": ("vocab", "shard"), "vocab": ("shard", "pretrain"), "shard": ("pretrain",),
    "pretrain": ("korquad", "nsmc"), "nsmc": (), "korquad": (),
}  # fmt: skip


def kind_of(number):
    return KINDS[number % len(KINDS)]


@dataclass
class Harmed:
    """A folder in which one file is other than it was."""

    base: Base
    folder: Path
    rng: random.Random
    told: list[str]  # what was done, and what was run

    @property
    def artifacts(self):
        return self.folder / "artifacts" / "tiny"

    def harm(self, path):
        """A flipped bit most often."""
        data = path.read_bytes()
        ways: Sequence[tuple[str, bytes]] = (
            ("a bit is flipped", flip(data, self.rng)), ("the last byte is gone", data[:-1]),
            ("64 zeros", zeros(data, self.rng)), ("one byte more", data + b"\n"), ("empty", b""),
        )  # fmt: skip
        how, changed = self.rng.choices(ways, (14, 2, 2, 1, 1))[0]
        if changed == data:
            how, changed = ways[0]
        path.write_bytes(changed or (b"" if data else b"\0"))
        self.told.append(f"{path.relative_to(self.folder)}: {how}")

    def one_of(self, files):
        return self.rng.choice(sorted(files))

    def run(self, *arguments, stdin=b"", outside=False):
        outcome = (run_outside if outside else run_here)(arguments, self.folder, stdin)
        self.told.append(f"cd {self.folder} && {shlex.join(['korbert', *arguments])}: left with {outcome.code}")
        self.told += [f"| {line[:500]}" for line in outcome.err.rstrip("\n").splitlines()[-3:]]
        return outcome

    def run_stage(self, stage, *, outside=False):
        return self.run(stage, "data/tiny.toml", "--root", "artifacts", "--workers", "1", outside=outside)

    def status(self):
        outcome = self.run("status", "data/tiny.toml", "--root", "artifacts", "--verify")
        self.told += [f"> {line[:300]}" for line in outcome.out.splitlines()]
        return outcome


def _status_says(harmed, stage, damaged, name=""):
    """`status --verify` never fails, and knows a damaged artifact from a fresh one. None: either will do.

    name: of the file, which it says.
    """
    outcome = harmed.status()
    if outcome.code != 0:
        yield f"status leaves with {outcome.code}: {outcome.message[:300]}"
        return
    state = next((line.split()[1] for line in outcome.out.splitlines() if line.startswith(f"{stage} ")), "nothing")
    if damaged and state == "fresh":
        yield f"status --verify calls {stage} fresh"
    elif damaged and name not in outcome.out:
        yield f"status --verify does not name {name}"
    if damaged is False and state != "fresh":
        yield f"status --verify calls {stage} {state}, and nothing that counts was harmed"


def _next_is_right(harmed, stage, following, names):
    """What builds on the stage refuses by name, or makes what it always made."""
    if following:
        outcome = harmed.run_stage(following, outside=stage == "shard")  # what maps files may crash
        yield from faults_of(outcome, names=names)
        if outcome.code == 0:
            yield from _same(harmed, following)


def _same(harmed, stage):
    if not (harmed.artifacts / stage / "stage.json").is_file():
        yield f"{stage} is not there"
    elif record_of(harmed.artifacts / stage)["digest"] != harmed.base.digest(stage):
        yield f"{stage} is another artifact than without the harm, and nobody says so"


def _below(harmed, stage):
    """Copies the stage, and all that something next to read it is made from. Returns that, if there is any."""
    following = harmed.rng.choice(NEXT[stage]) if NEXT[stage] else None
    needed = {stage, *READS[stage], *(READS[following] if following else ())}
    harmed.base.copy(harmed.folder, [name for name in STAGES if name in needed])
    return following


def _data(harmed):
    """A data file of an artifact."""
    stage = harmed.rng.choice(STAGES)
    following = _below(harmed, stage)
    path = harmed.artifacts / stage / harmed.rng.choice(sorted(record_of(harmed.artifacts / stage)["files"]))
    harmed.harm(path)
    yield from _status_says(harmed, stage, damaged=True, name=path.name)
    yield from _next_is_right(harmed, stage, following, (path.name, str(path.relative_to(harmed.folder).parent)))


_COVERED = ("format", "stage", "stage_version", "settings", "inputs", "files", "digest")


def _record(harmed):
    """stage.json. What lies outside its digest (counts, versions) may be believed."""
    stage = harmed.rng.choice(STAGES)
    following = _below(harmed, stage)
    path = harmed.artifacts / stage / "stage.json"
    before = json.loads(path.read_text(encoding="utf-8"))
    harmed.harm(path)
    try:
        after = json.loads(path.read_text(encoding="utf-8"))
        damaged = None if all(after.get(name) == before[name] for name in _COVERED) else True
    except (ValueError, AttributeError):
        damaged = True
    yield from _status_says(harmed, stage, damaged=damaged)
    yield from _next_is_right(harmed, stage, following, (stage,))


def _beside(harmed):
    """What no digest covers makes nothing stale, whatever becomes of it."""
    stage = harmed.rng.choice(STAGES)
    following = _below(harmed, stage)
    folder, names = harmed.artifacts / stage, ("run.json", "report.html", "timing.jsonl", "tensorboard")
    path = harmed.one_of(_files(folder, lambda path: path.relative_to(folder).parts[0] in names))
    harmed.harm(path)
    yield from _status_says(harmed, stage, damaged=None if path.name == "run.json" else False)
    yield from _next_is_right(harmed, stage, following, (stage,))


def _cut_off(harmed, stage):
    """What is left of a stage that was cut off halfway."""
    harmed.base.copy(harmed.folder, READS[stage])
    harmed.base.copy_stage(harmed.folder, f"{stage}.partial")
    return harmed.artifacts / f"{stage}.partial"


def _files(folder, fits):
    return [path for path in folder.rglob("*") if path.is_file() and fits(path)]


def _checkpoint(harmed):
    """A training state is passed over where it is damaged: the run ends where it always ended."""
    stage = harmed.rng.choice(("pretrain", "pretrain", "nsmc", "korquad"))
    files = _files(_cut_off(harmed, stage), lambda path: path.parent.name.startswith("step-"))
    records = [path for path in files if path.name == "record.json"]
    path = harmed.one_of(records if harmed.rng.random() < 0.5 else files)
    harmed.harm(path)
    yield from _goes_on(harmed, stage, (0,))


def _part(harmed):
    """A finished part is made again where it is damaged."""
    stage = harmed.rng.choice(("clean", "analyze"))
    harmed.harm(harmed.one_of(_files(_cut_off(harmed, stage), lambda path: path.name not in ("plan.json", MARK))))
    yield from _goes_on(harmed, stage, (0,))


def _plan(harmed):
    """What an artifact under way is to be."""
    stage = harmed.rng.choice(("clean", "analyze", "pretrain"))
    harmed.harm(_cut_off(harmed, stage) / "plan.json")
    yield from _goes_on(harmed, stage, (0, 1, 2))


def _goes_on(harmed, stage, codes):
    yield from _status_says(harmed, stage, damaged=None)
    outcome = harmed.run_stage(stage)
    yield from faults_of(outcome, names=(stage,), codes=codes)
    if outcome.code == 0:
        yield from _same(harmed, stage)


def _model(harmed):
    """A model's folder: its command refuses, or says what it said of the unharmed one."""
    stage = harmed.rng.choice(tuple(MODELS))
    folder = harmed.folder / "model"
    shutil.copytree(harmed.base.artifacts / stage / "model", folder)
    shutil.copy(harmed.base.data / "valid.json", harmed.folder / "valid.json")
    exports = harmed.rng.random() < 0.2
    right = _said(harmed, stage, exports=exports)
    path = harmed.one_of(_files(folder, lambda path: True))
    if harmed.rng.random() < 0.4:  # where most bytes are
        path = folder / "model.safetensors"
    harmed.harm(path)
    said = _said(harmed, stage, exports=exports)
    outcome = said[0]
    yield from faults_of(outcome, names=(path.name, "model"))
    if outcome.code == 0 and (outcome.out, said[1]) != (right[0].out, right[1]):
        yield "another answer than that of the unharmed model, and nobody says so"


def _said(harmed, stage, *, exports):
    """What comes out of the model: standard output, and files."""
    results = harmed.folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir()
    command = "export" if exports else MODELS[stage]
    arguments = {
        "export": ["results/exported"], "fill": ["나는 [MASK]에 간다.", "--top", "50"], "predict": [],
        "submit": ["valid.json", "results/answers.json"],
    }  # fmt: skip
    stdin = "재미있다\n지루하다\n연기가 좋다\n".encode() if command == "predict" else b""
    outcome = harmed.run(command, "model", *arguments[command], stdin=stdin)
    return outcome, {str(path.relative_to(results)): path.read_bytes() for path in _files(results, lambda path: True)}


_DO = {
    "data": _data, "record": _record, "beside": _beside, "checkpoint": _checkpoint, "part": _part, "plan": _plan,
    "model": _model,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("number", range(COUNT), ids=lambda number: f"{number:03d}-{kind_of(number)}")
def test_flips(base_with_partials, tmp_path, number):
    harmed = Harmed(base_with_partials, tmp_path, random.Random(f"{SEED}/flips/{number}"), [])
    fail(list(_DO[kind_of(number)](harmed)), harmed.told)
    shutil.rmtree(tmp_path)
