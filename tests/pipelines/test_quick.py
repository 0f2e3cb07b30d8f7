"""`finetune --quick`: labels by words and vectors, without training."""

import json

import pytest

import korbert
from korbert.errors import SettingsError
from tests.korbert.tiny import json_lines

POSITIVE = [
    "정말 재미있는 영화",
    "연기가 훌륭하다",
    "또 보고 싶은 영화",
    "감동적이고 따뜻하다",
    "최고의 영화",
    "음악이 아름답다",
]
NEGATIVE = [
    "시간이 아깝다",
    "지루하고 뻔하다",
    "돈이 아까운 영화",
    "연기가 어색하다",
    "최악의 영화",
    "이야기가 엉성하다",
]
ROWS = [
    (text, label) for pair in zip(POSITIVE, NEGATIVE, strict=True) for text, label in zip(pair, "좋싫", strict=True)
]
TEST = [("훌륭하고 감동적인 음악", "좋"), ("지루해서 시간이 아까웠다", "싫")] * 3


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick") / "mood"
    return korbert.finetune("korbert-mini", ROWS, test=TEST, quick=True, output=folder)


def test_the_model_is_right_and_in_use_as_any_other(quick, tmp_path):
    assert quick.scores["accuracy"] == 1
    model = quick.model
    assert model.can == ("predict", "embed")
    first, empty = model.predict(["훌륭한 영화", ""])
    assert first.label == "좋"
    assert empty.label is None
    assert model.predict("정말 재미있는 영화. " * 300).label == "좋"
    model.save(tmp_path / "model")
    again = korbert.load(tmp_path / "model").predict("훌륭한 영화")
    assert again.probabilities == pytest.approx(first.probabilities, abs=1e-6)


def test_vectors_are_those_of_the_encoder(quick):
    alone = korbert.load("korbert-mini-embed").embed(POSITIVE)
    assert quick.model.embed(POSITIVE) == pytest.approx(alone, abs=1e-6)


def test_scores_say_what_was_chosen(quick):
    scores = json.loads((quick.folder / "scores.json").read_text("utf-8"))
    row = scores["rows"][0]
    assert row["name"] == "linear"
    assert row["words"] is False
    assert row["c"] > 0
    assert 0 <= row["validation_accuracy"] <= 1
    assert scores["task"]["rungs"] == ["words", "vectors"]
    assert any("words are left out" in str(line) for line in scores["said"])
    assert [line["predictions"]["linear"][0]["label"] for line in json_lines(quick.folder / "predictions.jsonl")] == [
        label for _, label in TEST
    ]
    page = (quick.folder / "report.html").read_text("utf-8")
    assert "words and vectors" in page
    assert "above the majority baseline" in page or "no clear difference" in page


def test_evaluate_gives_the_same_scores(quick):
    assert korbert.evaluate(quick.folder, TEST).scores == quick.scores


def test_several_labels_get_thresholds():
    rows = [(text, ["영화", *(["좋음"] if label == "좋" else [])]) for text, label in ROWS]
    result = korbert.finetune("korbert-mini", rows, several=True, quick=True, baselines=False)
    kind = result.model.kind
    assert len(kind.thresholds) == 2
    assert kind.at_least_one
    assert result.model.predict("훌륭하고 감동적인 영화").labels == ["영화", "좋음"]


def test_pairs_are_read_by_both_texts():
    same = [(text, text, "같음") for text in POSITIVE + NEGATIVE]
    other = [(one, two, "다름") for one, two in zip(POSITIVE + NEGATIVE, NEGATIVE + POSITIVE, strict=True)]
    rows = [row for pair in zip(same, other, strict=True) for row in pair]
    result = korbert.finetune("korbert-mini", rows, quick=True, baselines=False)
    assert result.model.predict(("또 볼 영화", "또 볼 영화")).label == "같음"
    assert result.model.predict(("또 볼 영화", "세금을 냈다")).label == "다름"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rungs": ["words"]}, r"rungs \['words'\]: give \[\"encoder\"\] or"),
        ({"quick": True, "epochs": 3}, "the encoder is frozen then: leave epochs out"),
        ({"quick": True, "seeds": 2}, "the encoder is frozen then: leave seeds out"),
        ({"quick": True, "kind": "regression"}, "it is for kind classification"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    rows = [(text, 1.0 if label == "좋" else 0.0) for text, label in ROWS] if "kind" in settings else ROWS
    with pytest.raises(SettingsError, match=message):
        korbert.finetune("korbert-mini", rows, **settings)


def test_the_command_and_other_forms(quick, command, here, caplog):
    (here / "rows.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS), "utf-8")
    done = command("finetune", "korbert-mini", "--train", "rows.csv", "--quick", "--output", "mood")
    assert "words and vectors" in done.out
    assert "learned afterwards" in caplog.text
    refused = command("export", quick.folder, "hf", code=2)
    assert "nothing in transformers computes" in refused.err
