"""The pipeline from Python: the same artifacts, scores and errors as from the command line."""

import gc
import json
import logging
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import korbert
from korbert.errors import ArtifactError, CorpusError, ModelError, SettingsError
from korbert.pipelines import library
from korbert.tasks.files import ROLES
from korbert.tasks.kinds import KINDS
from korbert.tasks.noise import NOISE
from tests.pipelines.small_tasks import MOODS, TEXTS
from tests.tiny_recipe import write_data

ROWS = list(zip(TEXTS, MOODS, strict=True))
QUICK = {"features": "last", "epochs": 2, "max_length": 32, "device": "cpu", "workers": 1}


@pytest.fixture(scope="module")
def start(untrained):
    return untrained(hidden_size=32, num_hidden_layers=1, intermediate_size=32)


@pytest.fixture(scope="module")
def mood(start, tmp_path_factory):
    """A result in a folder, with baselines."""
    folder = tmp_path_factory.mktemp("models") / "mood"
    return korbert.finetune(start, ROWS, test=ROWS[:4], output=folder, **QUICK)


def test_a_result_has_scores_a_model_and_a_page(mood, start):
    assert mood.kind == "classification"
    assert (mood.scored_on, mood.rows) == ("test", 4)
    assert mood.scores.keys() == {"accuracy", "macro_f1"}
    assert {"majority", "tfidf"} <= mood.baselines.keys()
    assert mood.baselines["majority"].keys() == mood.scores.keys()
    low, high = mood.interval
    assert 0 <= low <= mood.scores["accuracy"] <= high <= 1
    assert any(note.startswith("train.jsonl: 10 rows") for note in mood.notes)
    assert mood.model.predict("정말 좋다").label in MOODS
    assert mood.report() == mood.folder / "report.html"
    assert "korbert.finetune" in mood.report().read_text(encoding="utf-8")
    assert repr(mood).startswith(f"classification in {mood.folder}\n")
    assert mood._repr_html_().startswith("<table><caption>fine-tuned: classification</caption><tr>")
    assert library.Finetuned.open(mood.folder) == mood
    made = korbert.Run(mood.folder.parent, {"pretrain": start, "tasks.mood": mood.folder}, {})
    assert (made.tasks, made.model.can) == ({"tasks.mood": mood}, ("fill", "embed"))


def test_the_same_rows_are_skipped_others_are_refused_or_trained_anew(mood, start, caplog, tmp_path):
    def again(rows, **more):
        return korbert.finetune(start, rows, test=ROWS[:4], output=mood.folder, **QUICK | more)

    with caplog.at_level(logging.INFO):
        assert again(iter(ROWS)) == mood
    assert "tasks.mood: fresh, skipped" in caplog.messages
    for rows, more, said in (
        (ROWS, {"epochs": 3}, "rebuild it with `rebuild=True`, or choose another output"),
        (ROWS[:8], {}, "is not what korbert finetune would make: .*train"),
    ):
        with pytest.raises(ArtifactError, match=said):
            again(rows, **more)
    other = korbert.finetune(start, ROWS, test=ROWS[:4], output=tmp_path / "new", **QUICK | {"epochs": 1})
    compared = korbert.compare(mood, other.folder)
    assert [name.split("/")[-1] for name in compared.names] == ["mood", "new"]
    assert compared.details["rows"] == 4
    with pytest.raises(SettingsError, match=r"^model scratch: .* has predictions of pretrained"):
        korbert.compare(mood, other, model="scratch")
    assert "accuracy" in repr(compared)
    assert compared.report(tmp_path / "page.html").is_file()
    rebuilt = korbert.finetune(start, ROWS, test=ROWS[:4], output=tmp_path / "new", rebuild=True, **QUICK)
    assert rebuilt.scores == mood.scores


def test_doubts_about_rows_are_said_once_with_their_places(start, caplog):
    rows = [*ROWS * 4, (TEXTS[0], "부정"), ("새 글", "부장")]
    korbert.finetune(start, rows, test=[("다른 글", "긍정"), ROWS[1]], baselines=False, **QUICK | {"epochs": 1})
    assert [entry.getMessage() for entry in caplog.records if entry.levelname == "WARNING"] == [
        "label '부장' (rows: 1) may be a slip of '부정' (rows: 21): train.jsonl, line 42",
        "texts with different labels: 1: '긍정' (train.jsonl, line 1), '부정' (train.jsonl, line 41)",
        "test rows with the texts of a training row: 1 of 2: test.jsonl, line 2",
    ]


def test_without_an_output_the_folder_lives_as_long_as_the_result(start, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = torch.get_num_threads()
    drawn = torch.random.get_rng_state()
    frame = pd.DataFrame({"문장": TEXTS, "점수": [float(n) / 2 for n in range(10)]})
    result = korbert.finetune(korbert.load(start, "cpu"), frame, text="문장", label="점수", baselines=False, **QUICK)
    assert (torch.get_num_threads(), result.kind, result.scored_on) == (threads, "regression", "valid")
    assert torch.equal(torch.random.get_rng_state(), drawn)
    assert result.folder.is_relative_to(tmp_path)
    model = result.model
    del result
    gc.collect()
    assert not list(tmp_path.iterdir())
    more = korbert.finetune(model, ROWS, baselines=False, **QUICK)  # from a model whose folder has gone
    assert more.model.can == ("predict", "embed")
    korbert.Model(more.model.network, more.model.tokenizer, more.model.kind).save(tmp_path / "saved")
    assert korbert.load(tmp_path / "saved").predict(TEXTS) == more.model.predict(TEXTS)


def test_a_known_data_set_and_a_model_of_no_folder(start, tmp_path):
    (tmp_path / "nsmc").mkdir()
    rows = "".join(f"{number}\t{text}\t{int(mood == '긍정')}\n" for number, (text, mood) in enumerate(ROWS))
    for part in ("train", "test"):
        (tmp_path / "nsmc" / f"ratings_{part}.txt").write_text(f"id\tdocument\tlabel\n{rows}", encoding="utf-8")
    model = korbert.load(start, "cpu")
    model.folder = None
    result = korbert.finetune(model, task="nsmc", data=tmp_path, baselines=False, **QUICK)
    assert (result.scored_on, result.rows, [*result.scores]) == ("test", 10, ["accuracy"])
    assert result.model.predict(TEXTS[0]).label in MOODS


@pytest.mark.parametrize(("given", "error", "said"), [
    ({}, SettingsError, "finetune: give train=FILE or rows, or else task=NAME with data=FOLDER"),
    ({"task": "klue-nli"}, SettingsError, "finetune: give train=FILE"),
    ({"train": ROWS, "epoch": 1}, SettingsError, r"epoch: no such key \(did you mean epochs\?\)"),
    ({"train": ROWS, "kind": "tagger"}, SettingsError, "no kind 'tagger' among classification, "),
    ({"train": ROWS, "label": "감정"}, CorpusError, "^train: no column '감정' for label among text, label"),
    ({"train": ROWS, "test": [("좋다", "보통")]}, CorpusError, r"'보통' 1 times, first at test, line 1"),
    ({"train": "no.csv"}, CorpusError, "no.csv: no such file"),
    ({"train": pd.DataFrame(ROWS, columns=["후기", "느낌"]), "label": "감정"}, CorpusError, "^train: no column '감정'"),
    ({"train": 3}, SettingsError, "train: is a int: give a path, a list of tuples or dicts"),
    ({"train": ROWS, "model": "korbert-mono"}, ModelError, "did you mean korbert-mini"),
    ({"train": [{"text": "좋다", "a": 0, "b": 1}] * 2}, CorpusError, "use several=True; else name .* with label$"),
    ({"train": [{"text": "좋다", "a": "b"}]}, CorpusError, "among text, a: name it with label, or another role$"),
    ({"train": ROWS, "max_length": 512}, SettingsError, "max_length 512 is more than the 64 positions"),
])  # fmt: skip
def test_mistakes_are_told_as_on_the_command_line_and_leave_nothing(given, error, said, start, here, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(here))
    with pytest.raises(error, match=said):
        korbert.finetune(**{"model": start, "device": "cpu", "max_length": 32, **given})
    assert not list(here.iterdir())


def test_evaluation_of_rows_and_files(mood, tmp_path):
    assert not [kind for kind, of in KINDS.items() if ROLES.keys() & of.section_class.model_fields.keys()]
    found = korbert.evaluate(mood.model, ROWS[:4], noise=True)
    assert found._repr_html_().startswith("<table><caption>4 rows</caption><tr><th")
    assert found.scores["accuracy"] == pytest.approx(mood.scores["accuracy"])
    assert found.intervals["accuracy"] == pytest.approx(mood.interval)
    assert [row["text"] for row in found.rows] == TEXTS[:4]
    assert found.noise.keys() == NOISE.keys()
    pd.DataFrame(ROWS, columns=["후기", "느낌"]).to_csv(tmp_path / "my.csv", index=False)
    assert len(korbert.evaluate(mood.folder, tmp_path / "my.csv", text="후기", label="느낌").rows) == 10
    with pytest.raises(
        SettingsError, match="'question' cannot be named for this kind of task, which has text, pair, label"
    ):
        korbert.evaluate(mood.model, ROWS, text="text", question="후기")


def test_a_recipe_runs_with_settings_and_errors_suggest_calls(tmp_path, sample):
    recipe = write_data(sample, tmp_path)
    root = tmp_path / "artifacts"
    changed = {"clean.part_bytes": 4_096}
    made = korbert.run(recipe, to="clean", root=root, settings=changed, workers=1)
    assert (made.folder, [*made.stages]) == (root / "tiny", ["clean"])
    record, ran = (json.loads((made.stages["clean"] / f"{name}.json").read_bytes()) for name in ("stage", "run"))
    assert (record["settings"]["part_bytes"], ran["command"]) == (4_096, "korbert.run")
    assert made.report() == root / "tiny" / "index.html"
    assert made.report().is_file()
    assert repr(made).startswith(f"{root / 'tiny'}\n  clean:")
    assert "<caption>" in made._repr_html_()
    with pytest.raises(ModelError, match=r"these stages have no model \(clean\): run pretrain, too"):
        made.model  # noqa: B018
    again = re.escape(f"`korbert.run('{recipe}', from_='clean', rebuild=True, root='{root}')`")
    with pytest.raises(ArtifactError, match=f"tiny/clean: is not what .* rebuild it with {again}"):
        korbert.run(recipe, to="clean", root=root)
    again = re.escape(f"`korbert.run('{recipe}', from_='analyze', root='{root}', settings={changed})`")
    with pytest.raises(ArtifactError, match=f"tiny/analyze: is absent.*run {again}"):
        korbert.pretrain(recipe, root=root, settings=changed)
    korbert.run(recipe, from_="clean", to="clean", root=root, rebuild=True, workers=1)


@pytest.mark.parametrize(("given", "error", "said"), [
    ({"to": "shards"}, SettingsError, "^to shards: .* has the stages clean analyze"),
    ({"from_": "vocab", "to": "clean"}, SettingsError, "^from_ vocab comes after to clean"),
    ({"data": "nowhere", "to": "clean"}, CorpusError, r"name the folder that holds it with data \("),
    ({"settings": {"clean.part_bytes.x": 1}}, SettingsError, "^settings clean.part_bytes.x=1: .* is not a table"),
    ({"settings": {"pretrain.phases": [{"length": 4, "steps": 1}]}}, SettingsError, "phases.0.length: .*, not 4"),
    ({"settings": {"vocab.size": float("nan")}}, SettingsError, "vocab.size: nan is not a number"),
    ({"settings": {"vocab.size": None}}, SettingsError, "^settings vocab.size: None: TOML has no NoneType: give text"),
    ({"settings": {"vocab.words": [np.int64(3)]}}, SettingsError, r"words: \[np.int64\(3\)\]: TOML has no int64: give"),
    ({"root": "other", "to": "clean"}, ArtifactError, "other/tiny/clean: is a symbolic .* choose another root$"),
])  # fmt: skip
def test_errors_of_a_recipe_name_arguments(given, error, said, sample, here):
    (here / "other" / "tiny").mkdir(parents=True)
    (here / "other" / "tiny" / "clean").symlink_to(here)
    recipe = write_data(sample, here, articles=2, reviews=4)
    with pytest.raises(error, match=said):
        korbert.run(recipe, **given)


@pytest.mark.slow  # its fast sibling: tests/korbert/test_processes.py
def test_a_script_needs_no_guard_against_its_own_workers(tmp_path, sample):
    recipe = write_data(sample, tmp_path, articles=10, reviews=20)
    run = f"korbert.run({str(recipe)!r}, to='clean', root={str(tmp_path / 'artifacts')!r}, workers=2)"
    (tmp_path / "script.py").write_text(f"import korbert\nprint('once')\nprint([*{run}.stages])", encoding="utf-8")
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["once", "['clean']"], done.stderr
