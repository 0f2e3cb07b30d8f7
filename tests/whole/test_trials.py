"""benchmarks/trials.py: steps from a time, ways that load, and trials of seconds from calibration to table."""

import importlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from pipelines import recipes
from tests.whole.conftest import Whole, _environment

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TRIALS = """
recipe = "{recipe}"
tasks = "tasks.toml"
base = "plain"
set = ["pretrain.evaluate_every=1_000_000"]
[ways.plain]
[ways.hidden]
about = "twice the labels"
set = ["pretrain.masking.rate=0.3"]
"""
TASKS = """
threads = 1
precision = "fp32"
[tasks.mood]
train = "ratings_train.txt"
test = "ratings_test.txt"
form = "tsv-plain"
columns = {{ text = "document", label = "label" }}
init = "model"
train_rows = 60
epochs = 1
seeds = [0, 1]
[tasks.other]
train = "ratings_train.txt"
init = "model"
"""


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("trials")


def test_every_way_of_the_file_loads(trials: ModuleType) -> None:
    """Each changes something, and gives the encoder that its name says."""
    listed = trials.Trials.load(BENCHMARKS / "trials.toml")
    settings = {way: listed.settings(way) for way in listed.ways}
    assert len({one.model_dump_json() for one in settings.values()}) == len(listed.ways) >= 13
    sizes = {way: one.encoder for way, one in settings.items() if "x" in way}
    assert {f"{one.num_hidden_layers}x{one.hidden_size}" for one in sizes.values()} == sizes.keys()
    assert {way: listed.first_like(way) for way in ("base", "muon", "6x256", "narrow")} == {
        "base": "base", "muon": "base", "6x256": "6x256", "narrow": "narrow",
    }  # fmt: skip
    changes = [f"tasks.{task}.init=/m" for task in listed.task_names()]
    assert recipes.load(listed.tasks, changes).section("tasks.nsmc").train_rows == 20_000


def test_steps_of_all_phases_are_scaled_to_the_time(trials: ModuleType) -> None:
    assert trials.steps_within(600, 2_400, [1_450, 400]) == [362, 100]
    assert trials.steps_within(4_800, 2_400, [1_450, 400]) == [2_900, 800]
    assert trials.steps_within(1, 2_400, [1_450, 400]) == [1, 1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('base = "plain"', 'base = "none"', "base 'none' is none of the ways plain, hidden"),
        ("pretrain.masking.rate=0.3", "vocab.size=500", "vocab.size=500: the ways share their shards"),
    ],
)
def test_what_no_trial_can_be_of(trials: ModuleType, tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "t.toml").write_text(TRIALS.format(recipe="demo").replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        trials.Trials.load(tmp_path / "t.toml")


def test_ways_are_timed_against_the_base_of_their_round(
    trials: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is twice as slow in the second round, and five times when a way is added; `steps` takes what counts.

    A mock of the clock, as it were: `korbert plan` says what we make up.
    """
    path = tmp_path / "t.toml"
    path.write_text(TRIALS.format(recipe="demo"), encoding="utf-8")
    listed = trials.Trials.load(path)
    said = iter([100, 150, 200, 300, 100, 170, 500, 250])

    def plan(*_: object, **__: object) -> str:
        return json.dumps({"outlook": {"forecast": {"training": next(said)}}})

    monkeypatch.setattr(trials, "korbert", plan)
    bench = trials.Bench(listed, tmp_path, tmp_path, 1)
    bench.calibrate(["hidden"], rounds=3, seconds=1)
    bench.calibrate(["hidden"], rounds=3, seconds=1)  # nothing is left to do
    phases = [phase.steps for phase in listed.settings("plain").phases]
    assert bench.steps("plain") == trials.steps_within(60, 100, phases)
    assert bench.steps("hidden") == trials.steps_within(60, 150, phases)

    path.write_text(path.read_text(encoding="utf-8") + '[ways.added]\nset = ["pretrain.seed=7"]\n', encoding="utf-8")
    more = trials.Bench(trials.Trials.load(path), tmp_path, tmp_path, 1)
    with pytest.raises(SystemExit, match="added: is not calibrated"):
        more.steps("added")
    more.calibrate(["added"], rounds=1, seconds=1)
    assert more.steps("added") == trials.steps_within(60, 50, phases)
    assert more.steps("plain") == bench.steps("plain")

    path.write_text(path.read_text(encoding="utf-8").replace("seed=7", "seed=8"), encoding="utf-8")
    with pytest.raises(SystemExit, match="give other settings another name"):
        trials.Bench(trials.Trials.load(path), tmp_path, tmp_path, 1).steps("added")


def test_a_killed_trial_goes_on_and_ends_in_a_table(whole: Whole, data: Path, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(TRIALS.format(recipe=whole.recipe), encoding="utf-8")
    (tmp_path / "tasks.toml").write_text(TASKS.format(), encoding="utf-8")
    root = tmp_path / "root"
    options = ["--data", data, "--root", root, "--shards", whole.folder, "--tasks", "mood", "--minutes", "0.1"]
    line = [sys.executable, BENCHMARKS / "trials.py", tmp_path / "t.toml", *options, "--rounds", "1", "--seconds", "1"]
    partial = root / "0.1" / "hidden-0" / "tiny" / "pretrain.partial"
    first = subprocess.Popen(line, env=_environment(), start_new_session=True)
    deadline = time.monotonic() + 300
    while not list(partial.glob("checkpoints/step-*")):
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    first.send_signal(signal.SIGTERM)
    assert first.wait() == 128 + signal.SIGTERM
    kept = (root / "calibration.json").read_text(encoding="utf-8")

    done = subprocess.run(line, env=_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (root / "calibration.json").read_text(encoding="utf-8") == kept
    timing = (partial.with_name("pretrain") / "timing.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(one)["kind"] for one in timing].count("start") == 2
    rows = [line.split(" | ") for line in (root / "trials.md").read_text(encoding="utf-8").splitlines()]
    assert {len(row) for row in rows} == {9}
    names = [row[0].removeprefix("| ") for row in rows]
    assert names[:2] == ["way", "---"]
    assert {"untrained", "tfidf", "plain", "hidden"} <= set(names)
    table = dict(zip(names, rows, strict=True))
    steps = json.loads((partial.with_name("pretrain") / "stage.json").read_text(encoding="utf-8"))["counts"]["steps"]
    assert table["hidden"][1:3] == ["0.1", f"{steps:,}"]
    assert table["hidden"][4].startswith("6 / ")
    assert 2 < float(table["plain"][5]) < 20  # bits a character
    assert " ± " in table["untrained"][6]
    assert "(" in table["plain"][6]
    assert "mood" in (root / "trials.svg").read_text(encoding="utf-8")
