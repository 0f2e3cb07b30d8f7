"""`korbert plan`: what it says with shards and without any data, and that its trial takes the way of a run."""

import datetime
import json
import re
import shlex
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from korbert.errors import SettingsError
from korbert.modeling import EncoderConfig
from korbert.modeling.arithmetic import activation_numbers, parameters
from korbert.pretraining import MaskingSettings, PairSettings, Phase, PretrainingRows, SpecialIds
from pipelines import plan_tables, planning, recipes, trial
from pipelines.cli import run_command
from pipelines.pipeline import Pipeline
from pipelines.planning import PhasePlan
from pipelines.runtime import Runtime
from pipelines.trial import PhaseTrial, Trial

RECIPE = """
seed = 1
heldout_share = 0.2
threads = 1
precision = "fp32"
[[clean.sources]]
name = "wiki"
path = "wiki.jsonl"
[vocab]
size = 1_600
[pretrain]
phases = [{ length = 64, batch_size = 8, steps = 40 }, { length = 128, batch_size = 4, steps = 20 }]
evaluate_every = 25
checkpoint_every = 10
heldout_rows = 16
[pretrain.encoder]
hidden_size = 32
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 64
[pretrain.optimizer]
learning_rate = 1e-3
"""
IDS = SpecialIds(cls=2, sep=3, mask=4, first_piece=384, vocab_size=1600)
SAID = re.compile(r"^  (\S.*?)  +(.+)$", re.MULTILINE)


@pytest.fixture(autouse=True)
def _own_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The recipe's folder is the data folder; the threads that a plan takes are given back."""
    monkeypatch.delenv("KORBERT_DATA", raising=False)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Path:
    """A recipe and 30 short articles."""
    folder = tmp_path_factory.mktemp("planned")
    articles = (sample / "wiki.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "wiki.jsonl").write_text("".join(sorted(articles, key=len)[:30]), encoding="utf-8")
    (folder / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    return folder / "tiny.toml"


@pytest.fixture(scope="module")
def made(recipe: Path) -> Path:
    """The root of artifacts up to the shards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KORBERT_DATA", raising=False)
        assert run_command(["run", str(recipe), "--to", "shard", "--workers", "1", "--root", str(recipe.parent)]) == 0
    return recipe.parent


def _pipeline(recipe: Path, root: Path, *changes: str, given: tuple[str, ...] = ()) -> Pipeline:
    runtime = Runtime(root=root, data=recipe.parent, device="cpu", given=given)
    return Pipeline(recipes.load(str(recipe), changes), runtime)


def _said(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    """What a plan says, by what it says it of."""
    capsys.readouterr()
    assert run_command(["plan", *arguments]) == 0
    return {name: " ".join(rest.split()) for name, rest in SAID.findall(capsys.readouterr().out)}


@pytest.mark.parametrize(
    ("name", "count", "steps", "rows"),
    [
        ("base", "109,482,240", "900,000 100,000", "256 256"),
        ("large", "335,141,888", "900,000 100,000", "256 256"),
        ("albert", "11,750,400", "125,000", "4,096"),
    ],
)
def test_the_papers_sizes_are_said_without_any_data(
    name: str, count: str, steps: str, rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = _said(capsys, name, "--seconds", "0", "--set", "vocab.size=30522", "--root", str(tmp_path / "none"))
    assert said["encoder and pooler"].startswith(count)
    assert (said["steps"], said["rows per step"]) == (steps, rows)
    assert set(said["epochs"].split()) == {"-"}
    assert "seconds per step" not in said
    assert list(tmp_path.iterdir()) == []


def test_without_shards_rows_are_full_and_ids_made_up(recipe: Path, tmp_path: Path) -> None:
    found = planning.plan(_pipeline(recipe, tmp_path), 0.1)
    assert found.notes == (
        "vocab is absent: using the 1,600 entries of vocab.size",
        "shard is absent: rows are assumed to be full, epochs are unknown, the trial uses random ids",
    )
    assert [phase.row_pieces for phase in found.phases] == [64, 128]
    assert found.outlook is not None
    assert [one.rows for one in found.outlook.trial.phases] == [8, 4]
    assert [one.pieces / one.steps for one in found.outlook.trial.phases] == [8 * 64, 4 * 128]
    assert list(tmp_path.iterdir()) == []  # nothing is left


def test_with_shards_it_says_what_a_run_would_see(recipe: Path, made: Path) -> None:
    found = planning.plan(_pipeline(recipe, made), 0.1)
    assert found.notes == ()
    for phase, settings in zip(found.phases, recipes.load(str(recipe)).section("pretrain").phases, strict=True):
        rows = PretrainingRows(
            sorted((made / "tiny" / "shard" / "train").glob("*.arrow")),
            IDS,
            settings.length,
            MaskingSettings(),
            PairSettings(),
            1,
        )
        steps = [rows.batch(step, settings.batch_size)[0]["pieces"] for step in range(settings.steps)]
        assert phase.step_pieces == pytest.approx(float(np.mean(steps)), rel=0.1)
        assert phase.epoch_rows == len(rows)
        assert phase.epochs == settings.steps * settings.batch_size / len(rows)
    assert found.outlook is not None
    tried = found.outlook.trial
    assert [one.rows for one in tried.phases] == [8, 4]
    assert min(one.steps for one in tried.phases) >= 3
    assert tried.evaluation > 0
    assert tried.product_rate > 0
    assert found.outlook.forecast.evaluations == 3
    assert {path.name for path in made.iterdir()} == {"tiny", "tiny.toml", "wiki.jsonl"}


def test_an_encoder_of_transformers_is_counted_where_it_runs(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = RECIPE.partition("[pretrain.encoder]")[2].partition("[pretrain.optimizer]")[0]
    table = f'\narchitecture = "transformers"\n[pretrain.encoder.transformers]\nmodel_type = "bert"{own}'
    other = tmp_path / "other.toml"
    other.write_text(RECIPE.replace(own, table), encoding="utf-8")
    given = ["--root", str(tmp_path), "--data", str(recipe.parent)]
    said = _said(capsys, str(other), *given, "--seconds", "1")
    bert = _said(capsys, str(recipe), *given, "--seconds", "0", "--set", "pretrain.encoder.architecture=bert")
    assert said["encoder and pooler"] == bert["encoder and pooler"]
    assert said["optimizer"] == bert["optimizer"]
    assert said["seconds per step"]
    million = 2 * 3 / 1e6  # a multiply-add is two, and there are three passes
    layer = 4 * 32 * 32 + 2 * 32 * 64
    assert said["encoder"] == " ".join(f"{million * (layer + 2 * length * 32):.3f}" for length in (64, 128))


def test_a_trial_changes_no_artifact(recipe: Path, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in (made / "tiny").rglob("*")}
    _said(capsys, str(recipe), "--root", str(made), "--seconds", "1")
    assert {path: path.stat().st_mtime_ns for path in (made / "tiny").rglob("*")} == before


def test_an_interrupted_trial_leaves_nothing_to_resume(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    presses = [signal.SIGINT]  # one: a second one would not wait for the step's end
    monkeypatch.setattr("pipelines.trial.evaluate", lambda *_: presses and signal.raise_signal(presses.pop()))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        assert run_command(["plan", str(recipe), "--root", str(tmp_path)]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().err
    assert "interrupted" in said
    assert "is saved" not in said
    assert list(tmp_path.iterdir()) == []


TRIED = Trial(
    phases=(PhaseTrial(10, 8, 4_000, 2.0), PhaseTrial(10, 4, 4_000, 4.0)),  # 2,000 and 1,000 pieces a second
    evaluation=6.0,
    checkpoint=0.5,
    preparing=3.0,
    memory=2**30,
    product_rate=1e11,
)
PHASES = (PhasePlan(64, 8, 1, 40, 50.0, 1_000), PhasePlan(128, 4, 1, 20, 100.0, 500))  # 400 pieces a step in both


def test_the_forecast_is_that_of_what_was_measured(recipe: Path, tmp_path: Path) -> None:
    found = planning.outlook(_pipeline(recipe, tmp_path), PHASES, TRIED, None)
    assert found.step_seconds == (0.2, 0.4)
    assert found.forecast.training == pytest.approx(40 * 0.2 + 20 * 0.4)
    assert (found.forecast.evaluations, found.forecast.checkpoints) == (3, 6)
    assert found.forecast.seconds == pytest.approx(16 + 3 * 6 + 6 * 0.5 + 3)
    assert found.within is None
    now = datetime.datetime.now().astimezone()
    assert found.ends - now == pytest.approx(datetime.timedelta(seconds=40), abs=datetime.timedelta(seconds=30))


def test_fewer_rows_in_the_trial_are_scaled_to_whole_steps(recipe: Path, tmp_path: Path) -> None:
    few = replace(TRIED, phases=(PhaseTrial(3, 1, 100, 0.05), TRIED.phases[1]))
    assert planning.outlook(_pipeline(recipe, tmp_path), PHASES, few, None).step_seconds == (0.2, 0.4)


def test_hours_make_a_command_that_runs_so_many_steps(recipe: Path, tmp_path: Path) -> None:
    given = ("--root", str(tmp_path), "--set", "pretrain.phases.0.steps=7")
    found = planning.outlook(_pipeline(recipe, tmp_path, given=given), PHASES, TRIED, 1)
    assert found.within is not None
    assert sum(n * s for n, s in zip(found.within.steps, found.step_seconds, strict=True)) <= 3600
    assert 3500 < found.within.forecast.seconds <= 3600
    planned = replace(planning.plan(_pipeline(recipe, tmp_path), 0), phases=PHASES, outlook=found)
    command = shlex.split("\n".join(plan_tables.lines(planned)).split("\nkorbert ")[1])
    assert command[: 2 + len(given)] == ["run", str(recipe), *given]
    changes = [command[place + 1] for place, word in enumerate(command) if word == "--set"]
    section = recipes.load(str(recipe), changes).section("pretrain")
    assert tuple(phase.steps for phase in section.phases) == found.within.steps


def test_the_tables_say_the_forecast(recipe: Path, tmp_path: Path) -> None:
    planned = planning.plan(_pipeline(recipe, tmp_path), 0)
    found = planning.outlook(_pipeline(recipe, tmp_path), PHASES, TRIED, 2)
    said = "\n".join(plan_tables.lines(replace(planned, phases=PHASES, outlook=found)))
    lines = {name: " ".join(rest.split()) for name, rest in SAID.findall(said.partition("\nthe run\n")[2])}
    assert lines["training"] == "16.0 s"
    assert lines["evaluations"] == "18.0 s 3 of them"
    assert lines["total"] == "40.0 s"
    whole = {name: " ".join(rest.split()) for name, rest in SAID.findall(said)}
    assert whole["seconds per step"] == "0.200 0.400"
    assert whole["pieces per second"] == "2,000 1,000"
    assert whole["epochs"] == "0.32 0.16"
    assert "within 2 hours (" in said


def test_json_has_the_same_figures(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["plan", str(recipe), "--root", str(tmp_path), "--seconds", "1", "--hours", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["token embedding"] == 1600 * 32
    assert found["phases"][1]["step_pieces"] == 512
    assert found["flop"][0]["vocabulary"]["forward"] == pytest.approx(0.15 * 2 * 32 * 1600)
    assert len(found["outlook"]["within"]["changes"]) == 2
    assert found["outlook"]["forecast"]["seconds"] > 0
    assert datetime.datetime.fromisoformat(found["outlook"]["ends"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--hours", "0"], r"--hours 0 --seconds 30: --hours needs a trial: give more than 0 for both"),
        (["--hours", "-3"], r"--hours -3 --seconds 30: "),
        (["--hours", "2", "--seconds", "0"], r"--hours 2 --seconds 0: "),
        (["--hours", "nan"], r"--hours nan --seconds 30: "),
        (["--hours", "inf"], r"inf.* is not in the range"),
        (["--seconds", "-1"], r"-1.* is not in the range"),
        (["--set", "pretrain.encoder.hiden_size=1"], r"did you mean hidden_size\?"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    recipe: Path, tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["plan", str(recipe), "--root", str(tmp_path), *options]) == 2
    assert re.search(said, capsys.readouterr().err)


def test_a_recipe_that_does_not_pretrain_is_refused(recipe: Path, tmp_path: Path) -> None:
    path = tmp_path / "text.toml"
    path.write_text(RECIPE.partition("[pretrain]")[0], encoding="utf-8")
    with pytest.raises(
        SettingsError, match=r"text\.toml: has no section \[pretrain\], and only pretraining is planned"
    ):
        planning.plan(_pipeline(path, tmp_path), 0)


def test_what_does_not_fit_into_memory_is_not_tried(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.machine.memory_of", lambda device: (2**20, 2**20))
    assert planning.plan(_pipeline(recipe, tmp_path), 0).device_memory == (2**20, 2**20)
    with pytest.raises(SettingsError, match=r"tiny\.toml: weights, gradients and optimizer need .* --seconds 0 plans"):
        planning.plan(_pipeline(recipe, tmp_path), 0.1)


def test_memory_is_that_of_the_largest_micro_batch() -> None:
    config = EncoderConfig(
        vocab_size=500, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
    )
    phases = (PhasePlan(64, 8, 1, 40, 50.0, None), PhasePlan(128, 8, 2, 20, 110.0, None))
    found = planning.memory_of(config, phases, "fp32")
    assert found["weights"] == found["gradients"] == found["optimizer"] / 2 == 4 * sum(parameters(config).values())
    assert found["activations"] == 440 * 4 * activation_numbers(config)
    assert planning.memory_of(config, phases, "bf16")["activations"] == 440 * 3 * activation_numbers(config)


def test_steps_are_taken_from_all_over_a_phase() -> None:
    for total in (1, 7, 1000, 900_000):
        places = [trial.spread(number, total) for number in range(40)]
        assert all(0 <= place < total for place in places)
        assert {place * 8 // total for place in places} >= set(range(min(8, total)))


@pytest.mark.parametrize(
    ("share", "most_rows", "rows", "micro_batches"),
    [(3.0, 99, 24, 2), (0.5, 99, 24, 2), (0.3, 99, 7, 1), (0.0, 99, 1, 1), (1.0, 5, 24, 5), (1.0, 0, 24, 24)],
)
def test_a_trial_has_rows_that_time_and_memory_allow(
    recipe: Path, tmp_path: Path, share: float, most_rows: int, rows: int, micro_batches: int
) -> None:
    trial.write_made_up(tmp_path, IDS, seed=0)
    made = PretrainingRows(
        [tmp_path / "train" / "part-00000.arrow"], IDS, 64, MaskingSettings(), PairSettings(), seed=0
    )
    phase = trial.of_fewer_rows(Phase(made, 100, 24, 2), share, most_rows)
    assert (phase.batch_size, phase.micro_batches) == (rows, micro_batches)
    assert phase.steps == 2400 // rows
    assert {len(made.example(0, number)["input_ids"]) for number in range(50)} == {64}


@pytest.mark.parametrize(
    ("seconds", "said"), [(42, "42.0 s"), (600, "10.0 min"), (3 * 3600, "3.0 h"), (20 * 86_400, "20.0 days")]
)
def test_durations_are_in_the_unit_that_people_take(seconds: float, said: str) -> None:
    assert plan_tables.duration(seconds) == said
