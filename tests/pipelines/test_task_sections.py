"""A section [tasks.NAME] is a stage of its own, in a recipe or in a place of its own."""

import json
import re
from pathlib import Path

import pytest

from korbert.errors import SettingsError
from korbert.pipelines.artifacts import Runtime, store
from korbert.pipelines.recipes import loading
from korbert.pipelines.recipes.loading import Recipe
from korbert.pipelines.reports import draw, task_scores
from korbert.pipelines.runs import Pipeline
from korbert.pipelines.runs.runner import make
from korbert.pipelines.stages import table
from korbert.pipelines.stages.table import STAGES, task_stage
from tests.pipelines.test_recipes import MINIMAL
from tests.pipelines.toys import moods

MOOD = '[tasks.mood]\nkind = "mood"\ntrain = "moods.tsv"\n'
OWN = MOOD + 'init = "model"\n'
LENGTHS = '[tasks.my-lengths]\nkind = "length"\ntrain = "moods.tsv"\ninit = "model"\n'


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    monkeypatch.setattr(loading, "section_class", moods.section_class)
    monkeypatch.setattr(table, "TASK_RUN", f"{moods.__name__}:run")
    monkeypatch.setattr(table, "TASK_PAGE", moods.__name__)
    assert moods.__name__ != task_scores.TASK_PAGE  # which read the table before: a toy has no result to show


@pytest.fixture
def folder(here):
    """The working folder: a file of texts, and what is taken for a model."""
    (here / "moods.tsv").write_text("좋다\t1\n싫다\t0\n그저 그렇다\t0\n", encoding="utf-8")
    (here / "model").mkdir()
    (here / "model" / "config.json").write_text("{}", encoding="utf-8")
    return here


def _write(folder, text):
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return "mine.toml"


def test_sections_of_tasks_are_the_last_stages_with_settings_by_kind(folder):
    given = _write(folder, MINIMAL.replace("seed = 3", "seed = 3\nthreads = 2") + MOOD + LENGTHS)
    recipe = loading.load(given, ["tasks.mood.epochs=2", "tasks.my-lengths.threads=1", "tasks.my-lengths.unit=eojeol"])
    assert list(recipe.stages) == [*STAGES, "tasks.mood", "tasks.my-lengths"]
    mood, lengths = (recipe.section(name) for name in ("tasks.mood", "tasks.my-lengths"))
    assert (mood.epochs, mood.seeds, mood.threads) == (2, (3,), 2)
    assert (lengths.unit, lengths.seed, lengths.threads) == ("eojeol", 3, 1)
    assert "unit" not in recipe.settings("tasks.mood")
    assert recipe.section("tasks.mood").patterns() == {"train": "moods.tsv"}
    pipeline = Pipeline(recipe, Runtime(root=folder / "artifacts", data=folder))
    assert [stage.name for stage in pipeline.stages("pretrain")] == ["pretrain", "tasks.mood", "tasks.my-lengths"]
    assert [stage.name for stage in pipeline.stages("vocab", "korquad")] == ["vocab", "shard", "pretrain"]
    assert pipeline.artifact("tasks.mood") == folder / "artifacts" / "mine" / "tasks.mood"


@pytest.mark.parametrize(("init", "reads", "found"), [
    ("", ("pretrain", "vocab"), ()), ('init = "scratch"\n', ("pretrain", "vocab"), ()),
    ('init = "scratch"\nunseen = true\n', ("clean", "pretrain", "vocab"), ()), ('init = "model"\n', (), ("model",)),
])  # fmt: skip
def test_what_a_task_goes_on_from(folder, init, reads, found):
    recipe = loading.load(_write(folder, MINIMAL + MOOD + init))
    assert recipe.stages["tasks.mood"].reads_under(recipe.section("tasks.mood")) == reads
    assert tuple(given for given, _ in recipe.folders("tasks.mood").values()) == found
    pipeline = Pipeline(recipe, Runtime(root=folder / "artifacts", data=folder))
    roles = {"train", "init"} if found else {"train"}
    assert pipeline.sources.files("tasks.mood").keys() == roles


def test_a_recipe_of_tasks_alone_has_no_other_stage(folder):
    recipe = loading.load(_write(folder, "threads = 2\n" + OWN + LENGTHS))
    assert list(recipe.stages) == ["tasks.mood", "tasks.my-lengths"]
    assert recipe.section("tasks.mood").threads == 2
    assert recipe.section("clean") is None
    long = MINIMAL + OWN + "max_length = 600\n"  # more than pretrain, which it does not read
    assert loading.load(_write(folder, long)).section("tasks.mood").max_length == 600


@pytest.mark.parametrize(("text", "changes", "said"), [
    (OWN, ["tasks.mood.kind=moot"], "mine.toml: tasks.mood.kind: 'moot' is no kind (did you mean mood?)"),
    (OWN, ["tasks.mood.epoch=2"], "mine.toml: tasks.mood.epoch: no such key (did you mean epochs?): known here: "),
    (OWN, ["tasks.mood.learning_rate=1"], "no such key (did you mean tasks.mood.optimizer.learning_rate?)"),
    (OWN, ["tasks.mood.optimizer.lr_rate=1"],
     "tasks.mood.optimizer.lr_rate: no such key (did you mean learning_rate?)"),
    (OWN, ["tasks.mood.unit=x"], "mine.toml: tasks.mood.unit: no such key"),
    (OWN, ["tasks.mood.spacing_noise=0.2"], "tasks.mood.spacing_noise: no such key (it is for kind classification, "
     "regression, token-classification): known here: "),
    (OWN, ["tasks.mood.epochs=0"], "mine.toml: tasks.mood.epochs: Input should be greater than or equal to 1"),
    (OWN.replace('train = "moods.tsv"\n', ""), [], "mine.toml: tasks.mood.train: is missing: add it"),
    (OWN, ["task.mood.epochs=2"], "mine.toml: task: no such key (did you mean tasks?)"),
    ("tasks = 3\n", [], "mine.toml: tasks: holds 3: write each task as a table, [tasks.NAME]"),
    ('[tasks]\nkind = "mood"\n', [], "mine.toml: tasks.kind: holds 'mood': write it as a table, [tasks.kind]"),
    ('[tasks."a.b"]\n', [], "mine.toml: tasks: 'a.b' is not a task name"),
    ('[tasks."감정"]\n', [], "mine.toml: tasks: '감정' is not a task name"),
    (MINIMAL + MOOD, ["tasks.mood.max_length=600"], "mine.toml: tasks.mood.max_length 600 is more than pretrain."),
    (MOOD, [], "pretrain: is missing, and tasks.mood reads it: add a section"),
    (OWN + "[vocab]\nsize = 2000\n", [], "clean.sources: is missing"),
])  # fmt: skip
def test_what_is_wrong_is_said(folder, text, changes, said):
    with pytest.raises(SettingsError, match=re.escape(said)):
        loading.load(_write(folder, text), changes)


def test_run_status_report_and_pages_know_tasks(folder, command):
    given = _write(folder, OWN + LENGTHS)
    made = folder / "artifacts" / "mine"
    said = command("run", given)
    for name in ("mood", "my-lengths"):
        assert re.search(rf"tasks\.{name}\W+81\.2\s% accuracy", said.out)
    record = store.read_record(made / "tasks.mood") or {}
    assert (record["stage"], record["counts"]) == ("tasks.mood", {"train": 3})
    assert [file["name"] for file in record["inputs"]["files"]["init"]] == ["model/config.json"]
    scores = json.loads((made / "tasks.mood" / "scores.json").read_text(encoding="utf-8"))
    assert scores["encoded"] == str(Path("artifacts", "mine", "encoded"))
    page = (made / "index.html").read_text(encoding="utf-8")
    assert all(f'href="tasks.{name}/report.html"' in page for name in ("mood", "my-lengths"))
    assert "2 of 2 stages done" in page
    assert page.count("<dd>81.2 %</dd>") == 2
    assert '<a href="../index.html">' in (made / "tasks.mood" / "report.html").read_text(encoding="utf-8")

    lines = command("status", given).out.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["tasks.mood", "fresh"], ["tasks.my-lengths", "fresh"]]
    assert len({line.index("fresh") for line in lines[1:]}) == 1
    (made / "index.html").unlink()
    shown = command("report", given).out
    assert all(f"{name}" in shown for name in ("tasks.mood/report.html", "tasks.my-lengths/report.html", "index.html"))


def test_tasks_run_by_name(folder, command, caplog):
    caplog.set_level("INFO")
    given = _write(folder, OWN + LENGTHS)
    made = folder / "artifacts" / "mine"
    command("tasks", given, "my-lengths")
    assert not (made / "tasks.mood").exists()
    assert (made / "tasks.my-lengths").is_dir()
    caplog.clear()
    shown = command("tasks", given).out
    assert "tasks.mood: done in" in caplog.text
    assert "tasks.my-lengths: fresh, skipped" in caplog.text
    assert re.search(r"81\.2\s% accuracy", shown)

    shown = command("tasks", given, "--dry-run", "mood", "--set", "tasks.mood.epochs=2").out
    assert "tasks.mood stale" in shown
    assert "my-lengths" not in shown
    said = command("tasks", given, "--set", "tasks.mood.epochs=2", code=2).err
    assert "tasks.mood: is not what mine.toml would make: epochs: 2 here, 1 in the artifact" in said
    assert "a run cannot be made longer, since" in said
    assert "name its model as init in another recipe" in said
    (again,) = re.findall(r"`korbert (.+)`", said)
    assert again == f"run {given} --from tasks.mood --to tasks.mood --rebuild --set tasks.mood.epochs=2"
    command(*again.split())
    assert (store.read_record(made / "tasks.mood") or {})["settings"]["epochs"] == 2


@pytest.mark.parametrize(("line", "said"), [
    ("tasks mine.toml mod", "mine.toml: has no section [tasks.mod], only mood: add it"),
    ("tasks demo", "demo: has no section [tasks.NAME]: add one"),
    ("run mine.toml --from tasks.mod", "--from tasks.mod: mine.toml has the stages tasks.mood: name"),
    ("run mine.toml --to clean", "--to clean: mine.toml has the stages tasks.mood: name one"),
    ("vocab mine.toml", "mine.toml: has no section [vocab]: add one"),
])  # fmt: skip
def test_stages_that_are_not_there(line, said, folder, command):
    _write(folder, OWN)
    assert said in command(*line.split(), code=2).err
    assert not (folder / "artifacts").exists()


def test_a_task_reads_what_pretrain_and_vocab_have_made(folder, command):
    (folder / "a.jsonl").write_text('{"text": "글"}\n', encoding="utf-8")
    given = _write(folder, MINIMAL + LENGTHS + MOOD)
    said = command("tasks", given, code=2).err
    assert "clean: is absent, and tasks.mood builds on it: run `korbert run mine.toml --from clean`" in said
    command("tasks", given, "my-lengths")  # builds on a folder alone

    pipeline = Pipeline(loading.load(given), Runtime(root=Path("artifacts"), data=folder))
    for stage in pipeline.stages(last="pretrain"):  # empty, but fresh
        store.begin(pipeline.partial(stage.name), pipeline.plan(stage))
        facts = {"counts": {}, "numerics": {}}
        store.finish(pipeline.partial(stage.name), pipeline.artifact(stage.name), pipeline.plan(stage), facts, {})
    command("tasks", given, "mood")
    record = store.read_record(pipeline.artifact("tasks.mood")) or {}
    assert record["inputs"]["artifacts"].keys() == {"pretrain", "vocab"}
    scores = json.loads((pipeline.artifact("tasks.mood") / "scores.json").read_text(encoding="utf-8"))
    assert scores["read"] == ["pretrain", "vocab"]


# --- in a place of its own ---


def _alone(place):
    stage = task_stage("tasks.mood", moods.Mood)
    settings = moods.Mood(train="moods.tsv", init="model")
    recipe = Recipe("mood", "korbert finetune", {stage.name: settings}, {stage.name: stage})
    given = ("finetune", "model", "--output", str(place))
    return Pipeline(recipe, Runtime(root=Path("artifacts"), data=Path.cwd(), given=given), place)


def _make(pipeline):
    (stage,) = pipeline.stages()
    pipeline.require_fresh_before([stage])
    pipeline.require_sources([stage])
    return make(pipeline, stage, rebuild=False, draw=draw)


def test_a_stage_makes_one_artifact_exactly_where_it_is_wanted(folder, monkeypatch):
    place = Path("out", "mine")
    monkeypatch.setenv("DIES", "1")
    with pytest.raises(KeyboardInterrupt):
        _make(_alone(place))
    assert (folder / "out" / "mine.partial" / "work" / "encoded" / "texts.json").is_file()
    monkeypatch.delenv("DIES")
    assert _make(_alone(place))
    assert {path.name for path in Path("out").iterdir()} == {"mine", "mine.lock"}
    files = {"scores.json", "stage.json", "run.json", "report.html"}
    assert {path.name for path in place.iterdir()} == files
    assert not (folder / "artifacts").exists()
    assert '<a href="../index.html">' not in (place / "report.html").read_text(encoding="utf-8")
    assert not _make(_alone(place))
    assert json.loads((place / "run.json").read_text(encoding="utf-8"))["resumed"]
    (folder / "here").mkdir()  # an empty folder, which can be the working folder
    monkeypatch.chdir(folder / "here")
    assert _alone(Path()).artifact("tasks.mood") == folder / "here"
    assert _alone(Path("..", "here")).artifact("tasks.mood") == Path("..", "here")


def test_its_sources_are_hashed_once(folder, monkeypatch):
    _make(_alone(Path("mine")))

    def refuse(path):
        raise AssertionError(path)

    monkeypatch.setattr("korbert.pipelines.runs.sources.sha256_of", refuse)
    assert not _make(_alone(Path("mine")))
    (folder / "moods.tsv").write_text("다른 글\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"moods\.tsv"):
        _make(_alone(Path("mine")))
