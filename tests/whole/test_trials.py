"""benchmarks/quality/trials.py: steps from a time, ways that load, and trials of seconds from calibration to table."""

import json
import math
import signal
import sys
from pathlib import Path

import pytest

from benchmarks.quality import trials
from korbert.messages import Message
from korbert.pipelines.recipes import loading
from korbert.system.durable import read_json
from tests.running import run_here

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks" / "quality"
TRIALS = """
recipe = "{recipe}"
tasks = "tasks.toml"
base = "plain"
set = ["pretrain.evaluate_every=1_000_000"]
[ways.plain]
seeds = [1]
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
columns = { text = "document", label = "label" }
init = "model"
train_rows = 60
epochs = 1
seeds = [0, 1]
[tasks.other]
train = "ratings_train.txt"
init = "model"
"""


def test_every_way_of_the_file_loads():
    """Each changes something, and gives the encoder that its name says."""
    listed = trials.Trials.load(BENCHMARKS / "trials.toml")
    settings = {way: listed.settings(way) for way in listed.ways}
    assert len({one.model_dump_json() for one in settings.values()}) == len(listed.ways) >= 13
    sizes = {way: one.encoder for way, one in settings.items() if "x" in way}
    assert {f"{one.num_hidden_layers}x{one.hidden_size}" for one in sizes.values()} == sizes.keys()
    likes = {"mini": "mini", "6x256": "6x256", "narrow": "narrow"}
    assert {way: listed.first_like(way) for way in likes} == likes
    changes = [f"tasks.{task}.init=/m" for task in listed.task_names()]
    assert loading.load(listed.tasks, changes).section("tasks.nsmc").train_rows == 20_000


def test_steps_of_all_phases_are_scaled_to_the_time():
    assert trials.steps_within(600, 2_400, [1_450, 400]) == [362, 100]
    assert trials.steps_within(4_800, 2_400, [1_450, 400]) == [2_900, 800]
    assert trials.steps_within(1, 2_400, [1_450, 400]) == [1, 1]


@pytest.mark.parametrize(("old", "new", "said"), [
    ('base = "plain"', 'base = "none"', "base 'none' is none of the ways plain, hidden"),
    ("seeds = [1]", 'steps_of = "none"', "steps_of 'none' is none of the ways plain, hidden"),
    ("pretrain.masking.rate=0.3", "vocab.size=500", "vocab.size=500: the ways share their shards"),
])  # fmt: skip
def test_what_no_trial_can_be_of(tmp_path, old, new, said):
    (tmp_path / "t.toml").write_text(TRIALS.format(recipe="demo").replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        trials.Trials.load(tmp_path / "t.toml")


def _command(folder, whole, data, minutes):
    """Arguments for trials of two ways below folder/root, of one task of two."""
    (folder / "t.toml").write_text(TRIALS.format(recipe=whole.recipe), encoding="utf-8")
    (folder / "tasks.toml").write_text(TASKS, encoding="utf-8")
    options = {"data": data, "root": folder / "root", "shards": whole.folder, "minutes": minutes, "tasks": "mood"}
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [str(folder / "t.toml"), *given, "--rounds", "1", "--seconds", "1"]


def _in_this_process(command, recipe, *words, changes=()):
    options = [word for change in changes for word in ("--set", change)]
    done = run_here([command, recipe, *map(str, words), *options], Path.cwd(), seconds=300)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.slow
def test_trials_end_in_a_table(whole, data, tmp_path, monkeypatch):
    """In one process, which takes seconds less for each command."""
    monkeypatch.setattr(trials, "korbert", _in_this_process)
    monkeypatch.setattr(sys, "argv", ["trials.py", *_command(tmp_path, whole, data, "0.02")])
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    trials.main()
    first = (tmp_path / "root" / "trials.md").read_text(encoding="utf-8")
    trials.main()  # all is there already
    assert (tmp_path / "root" / "trials.md").read_text(encoding="utf-8") == first
    for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
        signal.signal(number, handler)

    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines()]
    assert rows[0][6:] == ["mood", "against plain"]  # the other task has no scores
    assert [row[0] for row in rows[1:]] == ["---", "untrained", "majority", "tfidf", "plain", "hidden"]
    table = {row[0]: row for row in rows}
    root = tmp_path / "root"
    for way, run in (("plain", "plain-1"), ("hidden", "hidden-0")):
        artifact = root / "0.02" / run / "tiny" / "pretrain"
        last = json.loads((artifact / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        steps = read_json(artifact / "stage.json")["counts"]["steps"]
        assert table[way][1:4] == ["0.02", f"{steps:,}", f"{last['pieces']:,}"]
        assert table[way][4].startswith("1 / ")
    own = read_json(root / "0.02/plain-1/tiny/pretrain/scores.json")["mlm_loss"]
    counts = read_json(root / "corpus" / "heldout.json")
    bits = own / math.log(2) * counts["pieces"] / counts["characters"]  # the base's own rows are those of all
    assert float(table["plain"][5]) == pytest.approx(bits, abs=6e-4)
    places = {"untrained": "untrained/plain", "plain": "0.02/plain-1"}
    scores = {name: read_json(root / place / "tasks/tasks.mood/scores.json") for name, place in places.items()}
    means = {name: 100 * found["models"][0]["accuracy"]["mean"] for name, found in scores.items()}
    assert table["plain"][6].startswith(f"{means['plain']:.2f} ± ")
    assert table["plain"][6].endswith(f" ({means['plain'] - means['untrained']:+.2f})")
    assert [row["name"] for row in scores["plain"]["rows"]] == ["pretrained"] * 2  # baselines are scored once
    said = list(map(Message.from_json, scores["plain"]["said"]))
    assert "60 of the 200 training rows, by a hash of their texts, are used" in said
    assert "mood" in (root / "trials.svg").read_text(encoding="utf-8")
