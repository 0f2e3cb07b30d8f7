"""Encoders that were made elsewhere in every kind of task: imported, fine-tuned, saved, loaded, used."""

import json
import re
from functools import partial

import pytest

import korbert
from korbert.errors import SettingsError
from korbert.huggingface.importing import import_folder
from korbert.modeling import load_model
from korbert.modeling.adapters.transformers_config import CLASSES
from tests.korbert.tiny import json_lines
from tests.pipelines.small_tasks import PARTS, fine_tune, scores_of, write_table

# Of pieces that the small tokenizers know.
TEXTS = [
    "나는 어제 학교에 갔다", "친구를 만났는데 정말 반가웠어", "서울에 간다", "대한민국의 수도는 서울이다",
    "인구는 약 940만 명이다",
    "학교에 간다", "친구를 만난다", "아버지가 방에 들어가신다", "정말 만난다", "나는 서울에 간다",
]  # fmt: skip
SEOUL = "서울에 간다"
FRIEND = "친구를 만난다"
BASE = {
    "learning_rates": 1e-2, "batch_size": 5, "epochs": 25, "max_length": 48, "threads": 1, "checkpoint_every": 9999,
    "baselines": False, "precision": "fp32",
}  # fmt: skip
TYPES = ("albert", "deberta-v2", "distilbert", "electra", "longformer", "modernbert", "roberta", "xlm")
OFTEN = ("albert", "roberta", "distilbert")  # they share layers, have plain ones, and have other names
slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.fixture
def learn(tmp_path, foreign):
    """Imports an encoder, and runs a task on it; the artifact's folder."""

    def learned(model_type, kind, header, rows, **settings):
        import_folder(foreign(model_type), tmp_path / "start")
        path = write_table(tmp_path / "mine.csv", header, rows)
        fine_tune(kind, tmp_path / "start", tmp_path / "out", dict.fromkeys(PARTS, path), **{**BASE, **settings})
        return tmp_path / "out"

    return learned


def _pairs():
    rows = [[text, *((SEOUL, "도시") if place % 3 else (FRIEND, "사람"))] for place, text in enumerate(TEXTS)]
    return "classification", ["sentence1", "sentence2", "label"], rows


def _choices():
    rows = [[text, *((SEOUL, FRIEND, "0") if place % 3 else (FRIEND, SEOUL, "1"))] for place, text in enumerate(TEXTS)]
    return "multiple-choice", ["text", "choice1", "choice2", "label"], rows


def _spans():
    words = [re.finditer("학교에|친구를|서울에", text) for text in TEXTS]
    spans = [[(found.start(), found.end(), "것") for found in own] for own in words]
    rows = [[text, json.dumps(own, ensure_ascii=False)] for text, own in zip(TEXTS, spans, strict=True)]
    return "token-classification", ["text", "spans"], rows


# Every type learns one kind, and those with heads, positions or segments of their own learn all.
@pytest.mark.parametrize(("model_type", "kit"), [
    *(("roberta", _pairs), ("distilbert", _choices), ("modernbert", _spans)),
    *(slow(one, _pairs) for one in TYPES if one != "roberta"),
    slow("modernbert", _choices),
])  # fmt: skip
def test_ten_rows_are_learned_saved_and_loaded(learn, model_type, kit):
    folder = learn(model_type, *kit())
    assert next(iter(scores_of(folder)["pretrained"].values())) == 1.0
    lines = json_lines(folder / "predictions.jsonl")
    for one, line in zip(korbert.load(folder, "cpu").predict_rows(lines), lines, strict=True):
        (kept,) = line["predictions"]["pretrained"]
        if kit is _spans:
            assert one == kept
        else:
            assert one["probabilities"] == pytest.approx(kept["probabilities"], abs=1e-5)


LABELS = ["text", "label"], [[text, "서울" if "서울" in text else "다른 곳"] for text in TEXTS]


def test_piece_dropout_is_refused(learn):
    with pytest.raises(SettingsError, match=r"^piece_dropout 0\.2: an encoder of transformers has dropout settings"):
        learn("roberta", "classification", *LABELS, epochs=1, piece_dropout=0.2)


_XLM = ["attentions.L.", "layer_norm1.L.", "ffns.L.", "layer_norm2.L."]
# Of what the names of a layer begin with; L is its number, from 0.
_LAYERS = {"distilbert": ["transformer.layer.L."], "modernbert": ["layers.L."], "flaubert": _XLM, "xlm": _XLM}


@pytest.mark.parametrize("model_type", [one if one in OFTEN else slow(one) for one in CLASSES])
def test_lower_layers_learn_less_or_not_at_all(learn, tmp_path, model_type):
    settings = {"epochs": 1, "layer_decay": 0.01, "frozen_layers": 1}
    if model_type in ("albert", "funnel"):
        with pytest.raises(SettingsError, match=r"^the layers of (ALBERT share|Funnel are).*: leave layer_decay and"):
            learn(model_type, "classification", *LABELS, **settings)
        return
    folder = learn(model_type, "classification", *LABELS, **settings)
    before = load_model(tmp_path / "start")[0].state_dict()
    after = load_model(folder)[0].state_dict()
    learned = {name: weight for name, weight in before.items() if weight.is_floating_point()}
    moved = {
        name.removeprefix("encoder.model."): float((after[name] - one).abs().max()) for name, one in learned.items()
    }
    count = load_model(folder)[0].config.num_hidden_layers
    begins = _LAYERS.get(model_type, ["encoder.layer.L."])
    steps = []  # of each layer; what is left below is of no layer
    for number in range(count):
        own = [name for name in moved if name.startswith(tuple(one.replace("L", str(number)) for one in begins))]
        assert len(own) >= 4
        steps.append(max(moved.pop(name) for name in own))
    assert steps[0] == 0
    assert steps[-1] > 1e-4
    if count == 3:
        assert 0 < 10 * steps[1] < steps[2]
    assert {name for name, step in moved.items() if step} <= {"final_norm.weight"}
