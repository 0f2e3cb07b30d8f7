"""Spans and words by a CRF on layers of the encoder: `finetune`, and `--quick` and `--only` of it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import korbert
from korbert.errors import ModelError, SettingsError
from korbert.pipelines.experiments import tagging

PEOPLE = ["세종", "이순신", "유관순", "김구", "안중근", "윤동주"]
PLACES = ["서울", "부산", "광주", "대구", "천안", "평양"]


def row(person, place, number):
    text = f"{person}은 {place}에서 {number}번 만났다"
    return {"text": text, "spans": [[0, len(person), "PS"], [len(person) + 2, len(person) + 2 + len(place), "LC"]]}


ROWS = [
    row(person, place, number)
    for number, (person, place) in enumerate(zip(PEOPLE * 3, PLACES * 2 + PLACES[::-1], strict=True))
]
TEST = [row("강감찬", "인천", 3), row("세종", "서울", 4)]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return korbert.finetune("korbert-mini", ROWS, test=TEST, quick=True, output=tmp_path_factory.mktemp("tags") / "ner")


def test_spans_are_found_in_seconds_and_the_model_is_in_use(quick, tmp_path):
    assert quick.scores["entity_f1"] == 1
    model = quick.model
    assert (model.network.kind, model.network.layers, model.can) == ("crf", (1, 3, 5, 7), ("tag", "embed"))
    spans, empty = model.tag([TEST[0]["text"], ""])
    assert [(span.text, span.label) for span in spans] == [("강감찬", "PS"), ("인천", "LC")]
    assert all(0 < span.score <= 1 for span in spans)
    assert empty == []
    model.save(tmp_path / "model")
    assert korbert.load(tmp_path / "model").tag(TEST[0]["text"]) == spans
    assert korbert.evaluate(quick.folder, TEST).scores == quick.scores
    scores = json.loads((quick.folder / "scores.json").read_text("utf-8"))
    assert [entry["name"] for entry in scores["rows"]] == ["vectors", "dictionary"]
    assert scores["task"]["rungs"] == ["vectors"]


def test_the_tagger_of_the_box_is_tried(quick):
    scores = json.loads((quick.folder / "scores.json").read_text("utf-8"))
    (line,) = [line for line in scores["said"] if line["values"].get("name") == "korbert-mini-ner"]
    assert line["values"]["before"] > 0
    alone = korbert.finetune("korbert-mini", ROWS, quick=True, embedder="", baselines=False)
    said = json.loads((alone.folder / "scores.json").read_text("utf-8"))["said"]
    assert not [line for line in said if "name" in line["values"]]
    chosen = korbert.load("korbert-mini-ner" if line["values"]["after"] < line["values"]["before"] else "korbert-mini")
    if line["template"].startswith("vectors are those of"):
        own, other = (model.network.encoder.state_dict() for model in (chosen, quick.model))
        assert all(np.array_equal(own[name], other[name]) for name in own)


def test_spans_are_given_only_where_the_model_is_sure(quick, command, here):
    text = f"{TEST[0]['text']} 그리고 비가 왔다"
    spans = quick.model.tag(text)
    least = min(span.score for span in spans)
    kept = [span for span in spans if span.score > least]
    assert quick.model.abstaining(100 * least + 1e-6).tag(text) == kept
    (here / "lines.txt").write_text(text, "utf-8")
    line = json.loads(command("predict", quick.folder, "lines.txt", "--abstain", 100 * least + 1e-6).out)
    assert [span["text"] for span in line["spans"]] == [span.text for span in kept]
    with pytest.raises(SettingsError, match="give a percentage above 0 and below 100"):
        quick.model.abstaining(0)


def test_a_long_text_is_tagged_to_its_end(quick):
    text = "그날은 비가 많이 내렸다. " * 60 + TEST[0]["text"]
    assert [span.text for span in quick.model.tag(text)][-2:] == ["강감찬", "인천"]


@pytest.fixture(scope="module")
def tiny(untrained):
    return str(untrained(hidden_size=32, num_hidden_layers=2, intermediate_size=32))


def test_the_encoder_is_tuned_from_the_crf_on(tiny):
    result = korbert.finetune(tiny, ROWS, test=TEST, max_length=32, epochs=2, seeds=2)
    scores = json.loads((result.folder / "scores.json").read_text("utf-8"))
    assert [entry["name"] for entry in scores["rows"]] == ["tuned", "tuned", "vectors", "dictionary"]
    assert [entry.get("epoch") for entry in scores["rows"]][:2] == [2, 2]
    assert any(line["template"].startswith("the encoder is tuned: ") for line in scores["said"])
    before, after = (model.network.encoder.state_dict() for model in (korbert.load(tiny), result.model))
    assert any(not np.array_equal(before[name], after[name]) for name in before)


def test_a_batch_size_and_a_rate_that_are_given_are_taken(tiny, monkeypatch):
    ways = []

    def noted(ready, *others, **named):
        ways.append((ready.settings.batch_size, ready.settings.learning_rates))
        return replace(ready, settings=ready.settings.model_copy(update={"epochs": ()}))

    monkeypatch.setattr(tagging, "within_minutes", noted)
    for given in ({}, {"batch_size": 32, "learning_rates": 2e-4}):
        korbert.finetune(tiny, ROWS, max_length=32, epochs=1, baselines=False, **given)
    assert ways == [((4,), (4e-4,)), ((32,), (2e-4,))]


def test_all_that_is_tuned_has_a_gradient(monkeypatch):
    """Else torchrun's processes wait for one another."""
    without = []

    def backward(ready, build):
        model = build(0)
        ready.task.loss(model, ready.training.examples.batch(np.arange(2)))["loss"].backward()
        without.extend(
            name for name, weights in model.named_parameters() if weights.requires_grad and weights.grad is None
        )
        return replace(ready, settings=ready.settings.model_copy(update={"epochs": ()}))

    monkeypatch.setattr(tagging, "within_minutes", backward)
    korbert.finetune("korbert-mini", ROWS, max_length=32, epochs=1, baselines=False)
    assert without == []


def test_words_have_labels_by_their_first_piece():
    rows = [
        {"tokens": [person, place, "갔다"], "tags": ["NNP", "NNG", "VV"]}
        for person, place in zip(PEOPLE, PLACES, strict=True)
    ]
    result = korbert.finetune("korbert-mini", rows * 2, quick=True, baselines=False)
    assert [span.label for span in result.model.tag("이순신 부산 갔다")] == ["NNP", "NNG", "VV"]
    spans = [{"tokens": one["tokens"], "tags": ["B-PS", "I-PS", "O"]} for one in rows]
    result = korbert.finetune("korbert-mini", spans * 2, quick=True, baselines=False)
    (span,) = result.model.tag("이순신 부산 갔다")
    assert (span.text, span.label) == ("이순신 부산", "PS")


def test_what_does_not_fit_is_refused(quick, tmp_path, command):
    for settings, said in (
        ({"only": "words"}, r"rungs \['words'\]: give \[\"encoder\"\], \[\"vectors\"\] or both"),
        ({"quick": True, "epochs": 3}, "the encoder is frozen then: leave epochs out"),
    ):
        with pytest.raises(SettingsError, match=said):
            korbert.finetune("korbert-mini", ROWS, **settings)
    assert (
        "a CRF, which nothing in transformers computes" in command("export", quick.folder, tmp_path / "hf", code=2).err
    )


def test_the_encoder_alone_is_as_before(tiny):
    result = korbert.finetune(tiny, ROWS, only="encoder", epochs=1, max_length=32, baselines=False)
    assert result.model.network.kind == "token-classification"


def test_a_crf_has_no_eight_bits(quick):
    with pytest.raises((SettingsError, ModelError)):
        korbert.load(quick.folder, precision="int8")
    assert korbert.load(quick.folder, precision="auto").tag(TEST[0]["text"])
