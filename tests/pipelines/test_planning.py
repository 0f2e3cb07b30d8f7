"""`korbert plan`: what it says with shards and without any data, and that its trial takes the way of a run."""

import datetime
import functools
import json
import math
import re
import shlex
import signal

import numpy as np
import pytest
import torch

from korbert.errors import SettingsError
from korbert.pipelines.artifacts import Runtime
from korbert.pipelines.cli import run_command
from korbert.pipelines.planning import plan
from korbert.pipelines.recipes import loading
from korbert.pipelines.runs import Pipeline
from korbert.pretraining import MaskingSettings, PairSettings, PretrainingRows, SpecialIds, evaluate
from tests.tiny_recipe import RECIPE, write_data

IDS = SpecialIds(cls=2, sep=3, mask=4, first_piece=384, vocab_size=1600)
SAID = re.compile(r"^  (\S.*?)  +(.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory, sample):
    return write_data(sample, tmp_path_factory.mktemp("planned"), articles=30)


@pytest.fixture(scope="module")
def made(recipe):
    """The root of artifacts up to the shards."""
    assert run_command(["run", str(recipe), "--to", "shard", "--workers", "1", "--root", str(recipe.parent)]) == 0
    return recipe.parent


def _pipeline(recipe, root, *changes, given=()):
    runtime = Runtime(root=root, data=recipe.parent, device="cpu", given=given)
    return Pipeline(loading.load(str(recipe), changes), runtime)


@pytest.mark.parametrize(
    ("name", "steps", "rows"), [("base", "900,000 100,000", "256 256"), ("albert", "125,000", "4,096")]
)
def test_a_paper_is_planned_without_data(name, steps, rows, tmp_path, command):
    """Its parameters: tests/whole/test_mission.py."""
    shown = command("plan", name, "--seconds", "0", "--set", "vocab.size=30522", "--root", tmp_path / "none").out
    said = {name: " ".join(rest.split()) for name, rest in SAID.findall(shown)}
    assert (said["steps"], said["rows per step"]) == (steps, rows)
    assert set(said["epochs"].split()) == {"-"}
    assert "seconds per step" not in said
    assert list(tmp_path.iterdir()) == []


def test_without_shards_rows_are_full_and_random(recipe, tmp_path):
    found = plan.plan(_pipeline(recipe, tmp_path), 0.1)
    vocab, shard = found.notes
    assert vocab == "vocab is absent: using the 1,600 entries of vocab.size"
    assert shard == "shard is absent: rows are assumed to be full, epochs are unknown, the trial uses random ids"
    assert [phase.row_pieces for phase in found.phases] == [64, 128]
    assert [phase.tried_rows for phase in found.phases] == [8, 4]
    assert list(tmp_path.iterdir()) == []  # nothing is left


def test_an_existing_tokenizer_gives_its_size(tmp_path):
    text = re.sub(r"(?ms)^\[vocab\]$.*?(?=^\[)", '[vocab]\ntokenizer = "korbert-mini"\nadd = 400\n', RECIPE)
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    found = plan.plan(_pipeline(tmp_path / "tiny.toml", tmp_path), 0)
    assert found.notes[0] == ("vocab is absent: using 102,800 entries: those of vocab.tokenizer, and 400 of vocab.add")
    assert found.parameters["token embedding"] % 102_800 == 0


def test_with_shards_figures_are_those_of_a_run(recipe, made):
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*")}
    found = plan.plan(_pipeline(recipe, made), 1)
    assert found.notes == ()
    files = sorted((made / "tiny" / "shard" / "train").glob("*.arrow"))
    for phase, settings in zip(found.phases, loading.load(str(recipe)).section("pretrain").phases, strict=True):
        rows = PretrainingRows(files, IDS, settings.length, MaskingSettings(), PairSettings(), 1)
        steps = [rows.batch(step, settings.batch_size)[0]["pieces"] for step in range(settings.steps)]
        assert phase.step_pieces == pytest.approx(float(np.mean(steps)), rel=0.1)
        assert phase.epoch_rows == len(rows)
        assert phase.epochs == settings.steps * settings.batch_size / len(rows)
        assert phase.step_seconds
    assert found.timing.training == sum(phase.steps * (phase.step_seconds or 0) for phase in found.phases)
    assert found.timing.evaluations == 3
    assert found.timing.evaluating > 0
    left = found.timing.ends - datetime.datetime.now().astimezone()
    assert left.total_seconds() == pytest.approx(found.timing.total, abs=30)
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*")} == before


@pytest.mark.filterwarnings("ignore")  # of the compiler
def test_compilation_is_not_timed(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    compiled = []
    monkeypatch.setattr(plan, "evaluate", lambda *given: compiled.append(len(given[1])) or evaluate(*given))
    assert plan.plan(_pipeline(recipe, tmp_path, "pretrain.compile=true"), 1).timing.evaluating > 0
    assert compiled[0] == 1
    assert len(compiled) == 2


def test_no_compiler_is_seen_before_any_stage(recipe, tmp_path, monkeypatch, command):
    monkeypatch.setenv("CXX", "no-such-compiler")
    said = command("run", recipe, "--root", tmp_path, "--set", "pretrain.compile=true", code=2).err
    assert "pretrain.compile: no C++ compiler no-such-compiler" in said
    assert list(tmp_path.iterdir()) == []


def test_steps_that_take_long_are_timed_with_fewer_rows(recipe, tmp_path, monkeypatch):
    """Of a second for itself, and a tenth for each row."""
    steps = []

    def seconds_of(trial, phase, rows, warm, timed):
        steps.append((rows, timed))
        return 1 + 0.1 * rows

    monkeypatch.setattr(plan._Trial, "_seconds_of", seconds_of)
    more = _pipeline(recipe, tmp_path, "pretrain.phases=[{length = 64, batch_size = 80, micro_batches = 2, steps = 9}]")
    for seconds, rows in ((10_000, 80), (100, 30), (9, 8), (1, 8)):
        (phase,) = plan.plan(more, seconds).phases
        assert (phase.tried_rows, phase.step_seconds) == (rows, pytest.approx(9))
    assert [one for one in steps if one[0] > 1] == [(8, 1), (80, 20), (8, 1), (30, 20), (8, 1), (8, 4), (8, 1)]


def test_an_interrupted_trial_leaves_nothing_to_resume(recipe, tmp_path, monkeypatch, command):
    presses = [signal.SIGINT]  # one: a second one would not wait for the step's end
    monkeypatch.setattr(plan, "training_plan", lambda settings: presses and signal.raise_signal(presses.pop()))
    said = command("plan", recipe, "--root", tmp_path, code=130).err
    assert "interrupted" in said
    assert "is saved" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("hours", [0.05, 0.5, 1, 7.5, 1000])
def test_as_many_steps_as_fit_are_planned(hours):
    def seconds(steps):
        return steps[0] * 2 + steps[1] * 5 + math.ceil(sum(steps) / 100) * 30

    found = plan.steps_within(3600 * hours, (1450, 400), 1450 * 2 + 400 * 5, 30, 100)
    assert seconds(found) <= 3600 * hours
    assert seconds((found[0] + 24, found[1] + 8)) > 3600 * hours
    assert found[0] / found[1] == pytest.approx(1450 / 400, rel=0.1 if hours < 1 else 0.01)


def test_hours_give_a_command_with_so_many_steps(recipe, tmp_path, command):
    options = ["--root", str(tmp_path), "--set", "pretrain.phases.0.steps=7"]
    said = command("plan", recipe, "--seconds", "1", "--hours", "1", *options).out
    words = shlex.split(said.split("\nkorbert ")[1])
    assert words[:6] == ["run", str(recipe), *options]
    changes = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
    assert loading.load(str(recipe), changes).section("pretrain").phases[0].steps > 7
    found = json.loads(command("plan", recipe, "--seconds", "1", "--hours", "1", "--json", *options).out)
    assert found["phases"][1]["step_pieces"] == 512
    assert found["phases"][1]["pieces_per_second"] == pytest.approx(512 / found["phases"][1]["step_seconds"])
    assert datetime.datetime.fromisoformat(found["timing"]["ends"])


@pytest.mark.parametrize(("options", "said"), [
    ("--hours 0", r"--hours 0 --seconds 30: --hours needs a trial: give more than 0 for both"),
    ("--hours -3", r"--hours -3 --seconds 30: "), ("--hours 2 --seconds 0", r"--hours 2 --seconds 0: "),
    ("--hours nan", r"nan is not a number"), ("--hours inf", r"inf.* is not in the range"),
    ("--seconds -1", r"-1.* is not in the range"),
    ("--set pretrain.encoder.hiden_size=1", r"did you mean hidden_size\?"),
])  # fmt: skip
def test_invalid_options_are_refused(recipe, tmp_path, options, said, command):
    assert re.search(said, command("plan", recipe, "--root", tmp_path, *options.split(), code=2).err)


def test_what_cannot_be_planned_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"--hours 0\.001: one step of each phase .* take 0\.013 hours: give more"):
        plan.steps_within(3.6, (100, 20), 300, 30, 100)
    path = tmp_path / "text.toml"
    path.write_text(RECIPE.partition("[pretrain]")[0], encoding="utf-8")
    with pytest.raises(SettingsError, match=r"text\.toml: has no section \[pretrain\], and only pretraining is"):
        plan.plan(_pipeline(path, tmp_path), 0)


def test_models_larger_than_memory_are_not_tried(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "memory_of", lambda device: (2**19, 2**19))
    found = plan.plan(_pipeline(recipe, tmp_path), 0)
    assert found.device_memory == (2**19, 2**19)
    assert found.memory["weights"] == found.memory["optimizer"] / 2 == 4 * sum(found.parameters.values())
    with pytest.raises(SettingsError, match=r"tiny\.toml: weights, gradients and optimizer need .* --seconds 0 plans"):
        plan.plan(_pipeline(recipe, tmp_path), 0.1)
