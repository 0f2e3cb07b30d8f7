"""Labels by words, vectors and a tuned encoder: `finetune`, and `--quick` and `--only` of it."""

import io
import json
import random

import numpy as np
import pytest

import korbert
from korbert.errors import SettingsError
from korbert.pipelines.experiments import linear
from korbert.pipelines.inference.predicting import predict_lines
from korbert.pipelines.reports.look.data import look_data
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.splits import hash_bucket
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


def said(result):
    return json.loads((result.folder / "scores.json").read_text("utf-8"))["said"]


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


def test_personal_data_is_masked_before_it_is_learned(tmp_path, command):
    rows = [(f"{text} 010-1234-56{number:02}", label) for number, (text, label) in enumerate(ROWS)]
    result = korbert.finetune("korbert-mini", rows, only="vectors", output=tmp_path / "masked", mask_personal=True)
    (line,) = [line for line in said(result) if line["template"].startswith("personal data is masked")]
    assert line["values"]["count"] == len(ROWS)
    shown = [row["text"] for row in json_lines(result.folder / "predictions.jsonl")]
    assert {text.endswith("<전화번호>") for text in shown} == {True}
    # The model reads texts as it has learned them, also where nobody asks for it.
    model = korbert.load(result.folder)
    text, _ = rows[0]
    masked = text.replace("010-1234-5600", "<전화번호>")
    assert model.predict(text) == model.predict(masked)
    assert model.predict(text) != model.predict(text.replace("-", "x"))
    ((row,),) = predict_lines(model, io.BytesIO(text.encode()))
    assert row["text"] == masked
    assert {row["text"].split()[-1] for row in korbert.evaluate(model, rows).rows} == {"<전화번호>"}
    assert "personal data is not masked there" in command("export", result.folder, tmp_path / "hf").err
    with pytest.raises(SettingsError, match="mask_personal"):
        korbert.finetune("korbert-mini", [{"tokens": ["가"], "tags": ["O"]}] * 4, mask_personal=True)


def test_a_column_alone_is_calibrated_once(quick, monkeypatch):
    (first, *_) = json.loads((quick.folder / "scores.json").read_text("utf-8"))["rows"]
    monkeypatch.setattr("korbert.pipelines.experiments.linear.scale_on", lambda scores, targets: pytest.fail("again"))
    again = korbert.finetune("korbert-mini", ROWS, test=TEST, quick=True)
    assert again.model.predict("훌륭한 영화") == quick.model.predict("훌륭한 영화")
    assert first["temperature"] != 1


def test_vectors_are_those_of_one_of_two_encoders(quick):
    (line,) = [line for line in said(quick) if line["template"].startswith("vectors are those of")]
    alone = korbert.load(line["values"]["name"]).embed(POSITIVE, pooling="mean")
    assert quick.model.embed(POSITIVE, pooling="mean") == pytest.approx(alone, abs=1e-6)
    losses = dict(one.rsplit(" ", 1) for one in line["values"]["losses"].split(", "))
    is_lowest = losses[line["values"]["name"]] == min(losses.values())
    assert is_lowest != any(one["template"].startswith("the lower loss may be chance") for one in said(quick))


def test_scores_say_what_was_chosen(quick):
    scores = json.loads((quick.folder / "scores.json").read_text("utf-8"))
    row = scores["rows"][0]
    assert (row["name"], row["words"]) == ("linear", 0)
    assert 0 <= row["validation_accuracy"] <= 1
    assert scores["task"]["rungs"] == ["words", "vectors"]
    assert any("words are left out" in str(line) for line in scores["said"])
    assert [line["predictions"]["linear"][0]["label"] for line in json_lines(quick.folder / "predictions.jsonl")] == [
        label for _, label in TEST
    ]
    page = (quick.folder / "report.html").read_text("utf-8")
    assert "linear model" in page
    assert "above the majority baseline" in page or "no clear difference" in page


@pytest.mark.parametrize(("share", "others"), [(0.0, ["words"]), (0.5, ["vectors", "words"]), (1.0, ["vectors"])])
def test_a_column_that_is_the_linear_model_is_not_a_baseline_of_it(monkeypatch, share, others):
    monkeypatch.setattr("korbert.tasks.linear.best_share", lambda scores, targets: share)
    monkeypatch.setattr("korbert.tasks.linear.EASY", 1.1)
    result = korbert.finetune("korbert-mini", ROWS, test=TEST, quick=True, embedder="")
    rows = json.loads((result.folder / "scores.json").read_text("utf-8"))["rows"]
    assert rows[0]["name"] == "linear"
    assert sorted({row["name"] for row in rows} & {"words", "vectors"}) == others


def test_evaluate_gives_the_same_scores(quick):
    assert korbert.evaluate(quick.folder, TEST).scores == quick.scores


def test_several_labels_get_thresholds_and_reasons_each():
    rows = [(text, ["영화", *(["좋음"] if label == "좋" else [])]) for text, label in ROWS]
    model = korbert.finetune("korbert-mini", rows, several=True, quick=True, baselines=False).model
    assert (len(model.kind.thresholds), model.kind.at_least_one) == (2, True)
    assert model.predict("훌륭하고 감동적인 영화").labels == ["영화", "좋음"]
    assert set(model.predict("훌륭하고 감동적인 영화", why=True).reasons) == {"영화", "좋음"}


def test_rows_of_several_labels_are_scored_by_thresholds_that_others_chose(monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 3))
    targets = rng.random((200, 3)) < 0.2
    kind = Classification(labels=("a", "b", "c"), metrics=("micro_f1",), max_length=8, several=True)
    rows = [
        {"text": str(number), "label": [name for name, given in zip("abc", row, strict=True) if given]}
        for number, row in enumerate(targets)
    ]
    held_out = linear._HeldOut(rows, targets, scores)
    seen = []
    chosen = Classification.with_thresholds

    def noted(self, scores, targets):
        seen.append(len(scores))
        return chosen(self, scores, targets)

    monkeypatch.setattr(Classification, "with_thresholds", noted)
    by_others = linear._by_others(kind, held_out)
    assert (len(by_others), len(seen), sum(seen)) == (200, 5, 4 * 200)
    numbers = [number for number in range(200) if hash_bucket(str(number)) == 3]
    rest = [number for number in range(200) if number not in numbers]
    own = chosen(kind, scores[rest], targets[rest]).predictions_of(scores[numbers])
    assert [by_others[number] for number in numbers] == own
    assert len(linear._by_others(kind, linear._HeldOut(rows[:1], targets[:1], scores[:1]))) == 1


def test_a_model_that_abstains_is_not_scored(sure):
    with pytest.raises(SettingsError, match="this model abstains below 80 %, and texts without a label cannot"):
        korbert.evaluate(sure.model.abstaining(80), TEST)


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
        ({"rungs": ["words", "encoder"]}, r"rungs \['words', 'encoder'\]: give \[\"encoder\"\], "),
        ({"quick": True, "scratch": True}, r"these are for \[\"encoder\"\] alone: leave scratch out"),
        ({"quick": True, "only": "words"}, "give quick or only, not both"),
        ({"quick": True, "epochs": 3}, "the encoder is frozen then: leave epochs out"),
        ({"quick": True, "seeds": 2}, "the encoder is frozen then: leave seeds out"),
        ({"quick": True, "kind": "multiple-choice"}, "it is for kinds? classification"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    rows = [(text, 1.0 if label == "좋" else 0.0) for text, label in ROWS] if "kind" in settings else ROWS
    with pytest.raises(SettingsError, match=message):
        korbert.finetune("korbert-mini", rows, **settings)


def test_the_command_and_other_forms(quick, command, here, caplog):
    (here / "rows.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS), "utf-8")
    done = command("finetune", "korbert-mini", "--train", "rows.csv", "--quick", "--output", "mood")
    assert "linear model" in done.out
    assert "12 rows are scored, each by a model that has not learned it" in caplog.text
    assert "longer texts are cut at 128 pieces" in command("export", quick.folder, "hf").err


# --- sure, and unsure ---


@pytest.fixture(scope="module")
def sure(tmp_path_factory):
    """Of 120 rows without a test file."""
    rows = [(f"{text} {number}", label) for number in range(10) for text, label in ROWS]
    return korbert.finetune("korbert-mini", rows, quick=True, output=tmp_path_factory.mktemp("sure") / "mood")


def test_without_a_test_file_all_rows_are_scored(sure):
    assert (sure.scored_on, sure.rows) == ("folds", 120)
    lines = json_lines(sure.folder / "predictions.jsonl")
    assert len({line["text"] for line in lines}) == len(lines) == 120
    right = [line["predictions"]["linear"][0]["label"] == line["label"] for line in lines]
    assert sum(right) / 120 == sure.scores["accuracy"]
    assert set(sure.baselines) == {"words", "majority"}
    page = (sure.folder / "report.html").read_text("utf-8")
    for part in (
        "rows of the training file are scored, each by a model that has not learned it",
        "Expected calibration error",
        "Precision asked for with --abstain",
    ):
        assert part in page


def test_labels_are_given_only_where_the_model_is_sure(sure, command, here):
    texts = [*POSITIVE, *NEGATIVE, "영화", f"{POSITIVE[3]} {NEGATIVE[3]}", ""]
    all_given = sure.model.predict(texts)
    given = sure.model.predict(texts, abstain=99)
    for one, other in zip(all_given, given, strict=True):
        is_sure = one.label is not None and one.probabilities[one.label] >= 0.99
        assert other.label == (one.label if is_sure else None)
        assert (other.why is None) == is_sure
    assert any(one.label is None for one in given[:-1])
    (here / "texts.txt").write_text("\n".join(texts[:-1]) + "\n", "utf-8")
    found = [
        json.loads(line) for line in command("predict", sure.folder, "texts.txt", "--abstain", "99").out.splitlines()
    ]
    assert [row["label"] for row in found] == [one.label for one in given[:-1]]
    table = command("predict", sure.folder, "texts.txt", "--abstain", "99", "--csv").out
    assert table.count("not sure enough") == sum(one.label is None for one in given[:-1])
    assert "above 0 and below 100" in command("predict", sure.folder, "texts.txt", "--abstain", "100", code=2).err
    assert "cannot abstain" in command("predict", "korbert-mini-korquad", "texts.txt", "--abstain", "99", code=2).err


def test_a_model_that_abstains_is_saved_as_one(sure, tmp_path):
    sure.model.abstaining(80).save(tmp_path / "model")
    assert korbert.load(tmp_path / "model").predict(POSITIVE) == sure.model.predict(POSITIVE, abstain=80)


# --- unlike ---


def test_texts_unlike_those_of_training_are_marked(sure, tmp_path, command, here):
    texts = [
        "The quick brown fox jumps over the lazy dog",
        "원고는 피고에게 금 1,000만 원을 지급하라",
        f"{POSITIVE[0]} 3",
    ]
    fox, claim, film = sure.model.predict(texts)
    assert min(fox.unlike, claim.unlike) >= 99
    assert film.unlike is None
    sure.model.save(tmp_path / "model")
    assert korbert.load(tmp_path / "model").predict(texts)[0].unlike == fox.unlike
    (here / "texts.txt").write_text("\n".join(texts) + "\n", "utf-8")
    lines = [json.loads(line) for line in command("predict", sure.folder, "texts.txt").out.splitlines()]
    assert [line["unlike"] for line in lines] == [fox.unlike, claim.unlike, None]
    (here / "texts.txt").write_text("\n".join(texts[::-1]) + "\n", "utf-8")
    header, film_row, *_, fox_row = command("predict", sure.folder, "texts.txt", "--csv").out.splitlines()
    assert header.endswith(",unlike,error")
    assert film_row.endswith(",,")
    assert f",{fox.unlike:g}," in fox_row.replace(".0,", ",")


# --- why ---


def test_reasons_are_given_on_the_command_line_and_drawn(sure, command, here):
    (here / "texts.txt").write_text(f"{POSITIVE[1]}\n", "utf-8")
    (found,) = (json.loads(line) for line in command("predict", sure.folder, "texts.txt", "--why").out.splitlines())
    assert found["label"] == "좋"
    assert set(found["reasons"][0]) == {"text", "start", "end", "weight", "of"}
    assert "훌륭" in [reason["text"] for reason in found["reasons"][:3]]
    assert "훌륭" in command("predict", sure.folder, "texts.txt", "--why", "--csv").out.splitlines()[1]
    data = look_data(sure.model, POSITIVE[1], whole=True)
    label = data["label"]
    assert (label["names"], label["exact"]) == (["좋"], True)
    assert len(label["shares"][0]) == len(data["special"])
    assert label["scores"][0] - label["masked"][0] == pytest.approx(sum(label["shares"][0]), abs=0.01)


def test_the_report_shows_strong_morphemes_and_rows_like_wrong_ones(tiny, many, tmp_path):
    result = korbert.finetune(tiny, many, max_length=64, quick=True, output=tmp_path / "mood")
    details = json.loads((result.folder / "scores.json").read_text("utf-8"))["details"]
    assert set(details["morphemes"]) == {"좋", "싫"}
    assert {"훌륭", "감동"} & set(details["morphemes"]["좋"][:20])
    assert not set(details["morphemes"]["좋"]) & set(details["morphemes"]["싫"])
    lines = json_lines(result.folder / "predictions.jsonl")
    assert details["nearest"]
    for number, near in details["nearest"].items():
        line = lines[int(number)]
        assert line["predictions"]["linear"][0]["label"] != line["label"]
        assert len(near) == 3
        assert all(texts != [line["text"]] for texts, _ in near)
    page = (result.folder / "report.html").read_text("utf-8")
    assert [part for part in ("Strongest morphemes", "near it") if part not in page] == []
    assert many[0][0] not in (result.folder / "model" / "config.json").read_text("utf-8")


# --- a tuned encoder ---


@pytest.fixture(scope="module")
def many():
    """500 rows, of which a fifth has the other label."""
    rng = random.Random(3)
    rows = []
    for number in range(500):
        label = "좋싫"[number % 2]
        text = " ".join(rng.sample(POSITIVE if label == "좋" else NEGATIVE, 3))
        rows.append((f"{text} {number}", label if rng.random() < 0.8 else "싫좋"[number % 2]))
    return rows


@pytest.fixture(scope="module")
def tiny(untrained):
    return str(untrained(hidden_size=32, num_hidden_layers=1, intermediate_size=32))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory, tiny, many):
    folder = tmp_path_factory.mktemp("tuned") / "mood"
    return korbert.finetune(tiny, many, max_length=64, test=TEST, seeds=2, learning_rates=[1e-3, 1e-2], output=folder)


def test_the_encoder_is_tuned_from_the_linear_model_on(tuned):
    scores = json.loads((tuned.folder / "scores.json").read_text("utf-8"))
    names = [row["name"] for row in scores["rows"]]
    assert [*names[:3], names[-1]] == ["tuned", "tuned", "linear", "majority"]
    first = scores["rows"][0]
    assert first["tuned"] in (0.7, 1.0)
    assert len(first["trials"]) == 2
    assert first["validation_loss"] == min(trial["validation_loss"] for trial in first["trials"])
    assert [row["seed"] for row in scores["rows"]][:3] == [0, 1, None]
    assert any(line["template"].startswith("the encoder is tuned: ") for line in said(tuned))
    page = (tuned.folder / "report.html").read_text("utf-8")
    assert "tuned encoder" in page
    assert "linear model baseline" not in page


def test_a_tuned_model_is_saved_as_it_was_scored(tuned, tiny):
    assert korbert.evaluate(tuned.folder, TEST).scores == tuned.scores
    before, after = korbert.load(tiny), tuned.model
    own, other = (model.network.encoder.state_dict() for model in (before, after))
    assert any(not np.array_equal(own[name], other[name]) for name in own)


def test_an_easy_task_is_not_tuned():
    rows = [(f"{text} {number}", label) for number in range(42) for text, label in ROWS]
    result = korbert.finetune("korbert-mini", rows, baselines=False)
    assert any("held-out rows are right without it" in line["template"] for line in said(result))
    assert list(result.baselines) == []


def test_only_one_rung(tiny, many):
    words = korbert.finetune(tiny, many, max_length=64, test=TEST, only="words", baselines=False)
    assert not words.model.network.reads_vectors
    assert words.scores["accuracy"] == 1
    vectors = korbert.finetune(tiny, many, max_length=64, test=TEST, only="vectors", baselines=False)
    assert vectors.model.network.num_terms == 0
    encoder = korbert.finetune(tiny, many, max_length=64, test=TEST, only="encoder", epochs=1, baselines=False)
    assert encoder.model.network.kind == "classification"


def test_pairs_are_read_together_where_that_is_better(tiny):
    """Whether two numbers are equal cannot be seen in the words of each."""
    rng = random.Random(5)
    rows = []
    for _ in range(1_000):
        one, two = (rng.choice(POSITIVE) for _ in range(2))
        two = one if rng.random() < 0.5 else two
        rows.append((one, two, "같음" if (one == two) != (rng.random() < 0.1) else "다름"))
    result = korbert.finetune(tiny, rows, max_length=64, learning_rates=3e-3, epochs=2, baselines=False)
    kinds = {"pretrained": "classification", "linear": "linear"}
    first = json.loads((result.folder / "scores.json").read_text("utf-8"))["rows"][0]["name"]
    assert result.model.network.kind == kinds[first]
    assert any("the validation loss goes from" in line["template"] for line in said(result))
    assert result.model.predict((POSITIVE[0], POSITIVE[0])).label in ("같음", "다름")


# --- numbers, balance, time ---


@pytest.fixture(scope="module")
def ratings(tmp_path_factory, tiny, many):
    rows = [{"text": text, "score": 80 + 2 * (label == "좋")} for text, label in many]
    test = [{"text": text, "score": 80 + 2 * (label == "좋")} for text, label in ROWS]
    folder = tmp_path_factory.mktemp("ratings") / "stars"
    return korbert.finetune(tiny, rows, max_length=64, test=test, epochs=1, output=folder)


def test_numbers_have_the_same_rungs(ratings, tmp_path):
    names = [row["name"] for row in json.loads((ratings.folder / "scores.json").read_text("utf-8"))["rows"]]
    assert names[0] in ("tuned", "linear")
    assert names[-1] == "mean"
    assert ratings.scores["pearson"] > 0.5
    assert ratings.model.network.kind == "linear"
    good, bad = ratings.model.predict([POSITIVE[0], NEGATIVE[0]])
    assert 79 < bad < good < 83
    seen = look_data(ratings.model, POSITIVE[0], None)["label"]
    assert seen["number"]
    assert seen["scores"] == pytest.approx([good], rel=1e-3)
    ratings.model.save(tmp_path / "model")
    assert korbert.load(tmp_path / "model").predict(POSITIVE[0]) == pytest.approx(good, abs=1e-4)


def test_numbers_are_scored_in_folds(tiny, many):
    rows = [{"text": text, "score": float(label == "좋")} for text, label in many]
    result = korbert.finetune(tiny, rows, max_length=64, quick=True)
    assert result.scored_on == "folds"
    assert result.scores["pearson"] > 0.5


def test_balanced_labels_are_as_likely_before_a_text_is_read(tiny, many):
    rows = [row for number, row in enumerate(many) if row[1] == "좋" or number % 5 == 0]
    settings = {"max_length": 64, "only": "words", "baselines": False}
    as_they_are, balanced = (
        korbert.finetune(tiny, rows, class_weights=weights, **settings) for weights in ("none", "balanced")
    )
    share = sum(label == "좋" for _, label in rows) / len(rows)
    text = POSITIVE[0]
    one, two = (
        np.log(model.predict(text).probabilities["싫"] / model.predict(text).probabilities["좋"])
        for model in (as_they_are.model, balanced.model)
    )
    assert two - one == pytest.approx(np.log(share / (1 - share)), abs=1e-3)


def test_epochs_fit_into_the_minutes(tiny, many):
    none = korbert.finetune(tiny, many, max_length=64, minutes=1e-4, baselines=False)
    (line,) = [line for line in said(none) if "minutes are enough" in line["template"]]
    assert line["values"]["most"] == 0
    assert [row["name"] for row in json.loads((none.folder / "scores.json").read_text("utf-8"))["rows"]] == ["linear"]
    one = korbert.finetune(tiny, many, max_length=64, minutes=1e-4, only="encoder", baselines=False)
    assert [line["values"]["most"] for line in said(one) if "minutes are enough" in line["template"]] == [1]
    whole = korbert.finetune(tiny, many, max_length=64, minutes=60, epochs=2, baselines=False)
    assert not [line for line in said(whole) if "minutes are enough" in line["template"]]
