"""Heads on a frozen encoder, for every kind: learned by heart, saved whole, and computed from vectors that are kept."""

import json
from functools import partial

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from sklearn.linear_model import LogisticRegression

import korbert
from korbert.errors import SettingsError
from korbert.modeling import Encoder, FeatureModel, load_model
from korbert.pipelines.experiments.layers import combinations, layer_table
from korbert.pipelines.reports.pages.layers import score_table, write_page
from korbert.pipelines.reports.summary import show_tables
from korbert.pipelines.stages.finetuning import run
from korbert.tasks.kinds import KINDS
from tests.korbert.tiny import json_lines
from tests.pipelines import small_tasks
from tests.pipelines.small_tasks import MOODS, PARTS, TEXTS, choices, fine_tune, moods, numbers, spans, write_table

BASE = {"learning_rates": 3e-2, "batch_size": 5, "epochs": 40, "max_length": 32, "threads": 1, "baselines": False}


@pytest.fixture(scope="module")
def start(untrained):
    return untrained(hidden_size=32, intermediate_size=32, type_vocab_size=2, initializer_range=0.2)


@pytest.fixture
def learn(tmp_path, start):
    """Runs a task, or another function of a stage, on the rows of a CSV file; the output folder."""

    def learned(kind, header, rows, stage=run, **settings):
        files = dict.fromkeys(PARTS, write_table(tmp_path / "mine.csv", header, rows))
        fine_tune(kind, start, tmp_path / "out", files, tmp_path / "kept", stage, **{**BASE, **settings})
        return tmp_path / "out"

    return learned


def _score(folder):
    return next(iter(small_tasks.scores_of(folder)["pretrained"].values()))


@pytest.mark.parametrize(("given", "features"), [
    (moods, "last, linear"), (numbers, "concat of last 2, mlp, 32"), (choices, "sum of all, mlp, 32"),
    (spans, "first, linear"), (spans, "concat of last 2, mlp, 16"), (spans, "concat of last 2, bilstm, 16"),
    (moods, "weighted sum, bilstm, 16"),
])  # fmt: skip
def test_ten_examples_by_heart(learn, given, features):
    folder = learn(*given(), features=features, epochs=60)
    assert _score(folder) > 0.99
    lines = json_lines(folder / "predictions.jsonl")
    model = korbert.load(folder, "cpu")
    kept = [line["predictions"]["pretrained"][0] for line in lines]
    for one, two in zip(model.predict_rows(lines), kept, strict=True):  # without kept vectors
        if isinstance(one, dict):
            one, two = (found.get("label", found.get("choice")) for found in (one, two))
        assert one == (pytest.approx(two, abs=0.05) if isinstance(two, float) else two)


def test_the_next_head_computes_no_vectors(learn, monkeypatch):
    calls = []
    real = Encoder.all_layers

    def counted(self, input_ids, *args, **more):
        calls.append(len(input_ids))
        return real(self, input_ids, *args, **more)

    monkeypatch.setattr(Encoder, "all_layers", counted)
    learn(*moods(), features="weighted sum", epochs=1)
    assert sum(calls) == len(TEXTS)  # train, valid and test are the same rows
    learn(*moods(), features="weighted sum, mlp", epochs=1, seeds=(5,))
    learn(*moods(), features="last", epochs=1, seeds=(6,))
    assert sum(calls) == len(TEXTS)
    learn(*moods(), features="last", epochs=1, seeds=(7,), scratch=True)  # another encoder
    assert sum(calls) == 2 * len(TEXTS)


def test_a_weighted_sum_learns_its_weights_and_the_encoder_stays_as_it_was(learn, start):
    model = load_model(learn(*moods(), features="weighted sum", epochs=20), "features")[0]
    assert isinstance(model, FeatureModel)
    assert model.weights.detach().abs().min() > 0.01
    before = load_model(start)[0].encoder.state_dict()
    after = model.encoder.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())


def test_as_good_as_logistic_regression_on_the_same_vectors(learn, start):
    rows = [[f"{text} {number}", mood] for number in range(6) for text, mood in zip(TEXTS, MOODS, strict=True)]
    given = ("classification", ["text", "label"], rows)
    texts, labels = zip(*rows, strict=True)
    vectors = korbert.load(start, "cpu").embed(texts, normalize=False)
    theirs = LogisticRegression(max_iter=1000).fit(vectors, labels).score(vectors, labels)
    assert theirs == 1.0
    assert _score(learn(*given, features="last")) == theirs


def test_what_does_not_go_together_is_refused_and_heads_learn_longer(learn):
    for given, error, said in (
        ({"features": "sum of last four"}, SettingsError, "layers 'sum of last four': the encoder has 2 layers"),
        *(
            ({"features": "last", **more}, ValidationError, "the whole encoder is frozen then")
            for more in ({"layer_decay": 0.9}, {"frozen_layers": 1}, {"piece_dropout": 0.1})
        ),
    ):
        with pytest.raises(error, match=said):
            learn(*moods(), **given)
    section = KINDS["classification"].section_class
    assert section(train="a").epochs == ()  # as many as the rows need
    assert section.model_validate({"train": "a", "features": "last"}).epochs == (20,)
    assert section.model_validate({"train": "a", "features": "last", "epochs": 7}).epochs == (7,)


def test_a_table_of_layers(learn, tmp_path, capsys):
    stage = partial(layer_table, work=tmp_path / "work")
    folder = learn(*moods(), stage=stage, epochs=5, baselines=True, features="last, bilstm, 8")
    record = json.loads((folder / "layers.json").read_text(encoding="utf-8"))
    names = ["0", "1", "2", "sum of last 2", "weighted sum of last 2", "concat of last 2"]
    assert [model["name"] for model in record["models"]] == [*names, "majority", "tfidf"]
    assert [model["seeds"] for model in record["models"]] == [3] * 6 + [1, 1]
    assert record["baselines"] == ["majority", "tfidf"]
    assert record["best"] in names
    assert record["features"] == {"head": "bilstm", "width": 8, "keep": "float16"}
    for model in record["models"][:6]:
        own = [row["scores"]["accuracy"] for row in record["rows"] if row["name"] == model["name"]]
        assert model["accuracy"]["mean"] == pytest.approx(np.mean(own))
        assert model["accuracy"]["low"] <= model["accuracy"]["mean"] <= model["accuracy"]["high"]
        validated = [row["validation_accuracy"] for row in record["rows"] if row["name"] == model["name"]]
        assert model["validation"] == pytest.approx(np.mean(validated))
    assert combinations(1) == []
    assert combinations(2)[-1] == names[-1]
    assert (combinations(4)[-1], combinations(12)[-1]) == ("concat of last four", "weighted sum of all")
    show_tables([score_table(record)])
    printed = capsys.readouterr().out
    assert [name for name in (*names, "TF-IDF baseline") if name not in printed] == []
    page = write_page(tmp_path / "layers.html", "mood", record).read_text(encoding="utf-8")
    assert "<svg" in page
    assert "BiLSTM heads on the 2 layers" in page
    assert "concat of last 2" in page
