"""Encoders of transformers, untrained, that the stage pretrains over our vocabulary with our rows."""

import json
from functools import partial

import pytest
import torch
from foreign_folders import CONFIGS

import korbert
from korbert.modeling import PretrainingModel, load_model
from korbert.modeling.transformers_config import CLASSES
from korbert.pipelines.artifacts.runtime import Runtime
from korbert.pipelines.cli import run_command
from korbert.pipelines.stages import pretrain
from korbert.pipelines.stages.settings import PretrainStage
from korbert.versions import installed_version
from tests import tiny_recipe


def stage_settings(model_type, **others):
    given = {
        "encoder": {"architecture": "transformers", "transformers": {"model_type": model_type, **CONFIGS[model_type]}},
        "phases": [{"length": 48, "batch_size": 4, "steps": 3}], "precision": "fp32", "threads": 1, "heldout_rows": 8,
        "optimizer": {"learning_rate": 1e-2, "warmup_share": 0, "weight_decay": 0},
    }  # fmt: skip
    return PretrainStage.model_validate(given | others)


@pytest.mark.parametrize("model_type", CLASSES)
def test_each_architecture_learns(model_type, pretraining, tmp_path):
    settings = stage_settings(model_type)
    counts = pretrain.run(settings, pretraining, tmp_path, Runtime(tmp_path, tmp_path, workers=1, device="cpu"))
    model, _ = load_model(tmp_path / "model", "pretraining")
    assert counts["parameters"] == sum(weight.numel() for weight in model.parameters())
    # A gradient has reached every weight, and the held-out rows are predicted better than the first ones were.
    before = PretrainingModel(model.config, torch.Generator().manual_seed(settings.seed))
    drawn = before.state_dict()
    assert [name for name, weight in model.named_parameters() if torch.equal(weight, drawn[name])] == []
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in lines] == [1, 3, 3]
    assert lines[-1]["mlm_loss"] < lines[0]["mlm_loss"]


ELECTRA = """architecture = "transformers"
[pretrain.encoder.transformers]
model_type = "electra"
embedding_size = 16
max_position_embeddings = 128
hidden_size = 32"""
MOOD = """
[tasks.mood]
kind = "classification"
train = "moods.csv"
test = "moods.csv"
max_length = 32
epochs = 1
scratch = true
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory, sample):
    folder = tmp_path_factory.mktemp("recipe")
    moods = "정말 좋다,좋음\n정말 싫다,나쁨\n" * 6
    (folder / "moods.csv").write_text(f"text,label\n{moods}", encoding="utf-8")
    recipe = tiny_recipe.RECIPE.replace("hidden_size = 32", ELECTRA).replace("epochs = 2", "epochs = 1") + MOOD
    return tiny_recipe.write_data(sample, folder, recipe, ratings=(40, 40), questions=(1, 1))


@pytest.mark.slow
def test_from_a_recipe_to_its_tasks(recipe, tmp_path, command):
    given = [str(recipe), "--root", str(tmp_path), "--workers", "1"]
    assert run_command(["run", *given]) == 0
    folder = tmp_path / "tiny"
    record = json.loads((folder / "pretrain" / "stage.json").read_text(encoding="utf-8"))
    assert record["versions"]["transformers"] == installed_version("transformers")
    assert record["settings"]["encoder"]["transformers"]["embedding_size"] == 16
    assert command("status", *given[:3]).out.count("fresh") >= 7
    # Each task has begun with it, and stands beside the same encoder untrained.
    config = load_model(folder / "pretrain", "pretraining")[0].config
    kinds = {"nsmc": "classification", "korquad": "question-answering", "tasks.mood": "classification"}
    assert [load_model(folder / stage, kind)[0].config for stage, kind in kinds.items()] == [config] * 3
    names = [row["name"] for row in json.loads((folder / "tasks.mood" / "scores.json").read_text())["rows"]]
    assert {"pretrained", "scratch"} <= set(names)
    assert korbert.load(folder / "tasks.mood", "cpu").predict(["정말 좋다"])[0].label in ("좋음", "나쁨")
    assert len(korbert.load(folder / "pretrain", "cpu").fill("오늘 [MASK] 좋다")) == 1
    requirements = (folder / "korquad" / "submission" / "requirements.txt").read_text()
    assert f"transformers=={installed_version('transformers')}" in requirements


def test_sop_and_spans_train_but_rtd_is_refused(pretraining, tmp_path):
    settings = stage_settings("electra", objectives=["mlm", "sop", "spans"])
    pretrain.run(settings, pretraining, tmp_path, Runtime(tmp_path, tmp_path, workers=1, device="cpu"))
    model, _ = load_model(tmp_path / "model", "pretraining")
    assert model.objectives == ("mlm", "sop", "spans")
    assert {"mlm_loss", "sop_loss", "spans_loss"} <= json.loads((tmp_path / "scores.json").read_text()).keys()
    with pytest.raises(ValueError, match="rtd needs an encoder of korbert, not one of transformers: leave it out, or"):
        stage_settings("electra", objectives=["rtd"])
    distill = partial(stage_settings, "electra", objectives=["mlm", "distill"])
    with pytest.raises(ValueError, match=r"distill\.begin needs an encoder of korbert, not one of transformers"):
        distill(distill={"teacher": "model"})
    assert distill(distill={"teacher": "model", "begin": False}).distill.teacher == "model"
