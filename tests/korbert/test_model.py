"""A model in use: what it can do, what it refuses, and the folder that it writes and reads."""

import math

import pandas as pd
import polars
import pyarrow as pa
import pytest
from datasets import Dataset

import korbert
from korbert.errors import ModelError, SettingsError
from korbert.model import Model
from korbert.modeling import models as networks
from korbert.modeling import save_model
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.kinds.classification import Classification, Label
from korbert.tasks.kinds.multiple_choice import Choice, MultipleChoice
from korbert.tasks.kinds.question_answering import QuestionAnswering
from korbert.tasks.kinds.regression import Regression
from korbert.tasks.kinds.token_classification import TokenClassification

MOOD = Classification(metrics=("accuracy",), max_length=32, labels=("부정", "긍정"))
OWN = Classification(
    metrics=("accuracy",),
    max_length=32,
    labels=("부정", "긍정"),
    pair=True,
    columns={"text": ("문의",), "pair": ("text",)},
)
READING = QuestionAnswering(metrics=("f1",))
SCORE = Regression(metrics=("mae",), max_length=32, mean=0, deviation=1)
CHOICE = MultipleChoice(metrics=("accuracy",), max_length=32, most=2, columns={"choices": ("보기1", "보기2")})
SPANS = TokenClassification(
    metrics=("accuracy",), max_length=32, tags=("O", "B-PS", "I-PS"), units="characters", stride=8
)


@pytest.fixture(scope="module")
def models(tiny_tokenizer, tiny_config):
    config = tiny_config()
    return {
        "mood": Model(MOOD.model(config), tiny_tokenizer, MOOD, name="models/mood"),
        "own": Model(OWN.model(config), tiny_tokenizer, OWN),
        "score": Model(SCORE.model(config), tiny_tokenizer, SCORE),
        "choice": Model(CHOICE.model(config), tiny_tokenizer, CHOICE),
        "gaps": Model(networks.PretrainingModel(config), tiny_tokenizer, name="models/gaps"),
        "answers": Model(READING.model(config), tiny_tokenizer, READING, name="models/answers"),
        "spans": Model(SPANS.model(config), tiny_tokenizer, SPANS),
        "no task": Model(networks.ClassificationModel(config, 2), tiny_tokenizer, name="models/other"),
    }


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("mood", lambda model: model.fill("[MASK]"), "mood: is a classification model: it can predict and embed; gaps"),
        ("mood", lambda model: model.expect("가"), "mood: is a classification model: it can predict and embed; gaps"),
        ("mood", lambda model: model.answer("누가?", "가"), "mood: is a classification model: .* questions need a mo"),
        ("gaps", lambda model: model.predict("가"), "gaps: is a pretraining model: it can fill and embed; predictions"),
        ("gaps", lambda model: model.predict_rows([]), "gaps: is a pretraining model: it can fill and embed; predic"),
        ("answers", lambda model: model.tag("가"), "answers: is a question-answering model: it can answer and embed"),
        ("no task", lambda model: model.predict("가"), "other: is a classification model: it can embed; predictions"),
    ],
)
def test_what_a_model_cannot_do_is_refused_with_what_it_can(models, name, asked, said):
    """And what is no text is named by every method."""
    with pytest.raises(ModelError, match=f"^models/{said}"):
        asked(models[name])
    for method in (models["mood"].embed, models["gaps"].fill, models["spans"].tag):
        with pytest.raises(SettingsError, match=r"texts\[1\] is None: give only strings"):
            method(["[MASK]", None])


def test_a_model_is_saved_over_a_model_of_ours_alone_and_only_if_asked(models, tmp_path):
    models["mood"].save(tmp_path / "mood")
    with pytest.raises(SettingsError, match="mood: already exists: name a new folder"):
        models["mood"].save(tmp_path / "mood")
    models["mood"].save(tmp_path / "mood", overwrite=True)
    assert korbert.load(tmp_path / "mood").digest == models["mood"].digest
    (tmp_path / "mood" / "notes.txt").write_text("of someone")
    with pytest.raises(SettingsError, match="mood: already exists"):
        models["mood"].save(tmp_path / "mood", overwrite=True)
    assert (tmp_path / "mood" / "notes.txt").read_text() == "of someone"


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_somebody_else_are_not_saved_over(models, tmp_path, overwrite):
    folder, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "config.json").write_text("of someone")
    elsewhere.write_text("of someone")
    (folder / "model.safetensors").symlink_to(elsewhere)
    with pytest.raises(SettingsError, match="project: already exists"):
        models["mood"].save(folder, **({"overwrite": True} if overwrite else {}))
    assert (folder / "config.json").read_text() == elsewhere.read_text() == "of someone"


def test_a_saved_model_is_the_same_when_loaded(models, tmp_path):
    models["mood"].save(tmp_path / "mood")
    loaded = korbert.load(str(tmp_path / "mood"), "cpu")
    assert (loaded.kind, loaded.name, loaded.precision) == (MOOD, str(tmp_path / "mood"), "fp32")
    result = loaded.predict("정말 좋다")
    assert isinstance(result, Label)
    assert result.probabilities == pytest.approx(models["mood"].predict("정말 좋다").probabilities)
    # A folder without a task has vectors.
    save_model(tmp_path / "model", models["answers"].network, models["answers"].tokenizer)
    assert Model.load(tmp_path / "model", "cpu").can == ("embed",)


def test_a_damaged_entry_of_a_task_is_named():
    for changes, said in (
        ({"max_length": None}, "task.max_length: Input should be a valid integer"),
        ({"max_length": 0}, "task.max_length: Input should be greater than or equal to 3"),
        ({"metrics": []}, "task.metrics: Tuple should have at least 1 item"),
        ({"labels": 3}, "task.labels: Input should be a valid tuple"),
        ({"more": 1}, "task.more: Extra inputs are not permitted"),
        ({"kind": "question-answering", "labels": ["가"]}, "task.labels: Extra inputs are not permitted"),
    ):
        with pytest.raises(ModelError) as caught:
            kind_of_task(MOOD.task() | changes, "models/mood")
        assert str(caught.value).startswith(f"models/mood/config.json: {said}")
        assert str(caught.value).endswith(": put the file back as it was written")
        assert "\n" not in str(caught.value)


ROWS = {
    "문의": ["언제 오나요", "좋아요"],
    "text": ["내일", "정말"],
    "pair": ["틀린 칸", "틀린 칸"],
    "점수": [1, "없음"],
}
TABLE = {name: cells for name, cells in ROWS.items() if name != "점수"}


@pytest.mark.parametrize("rows", [
    pd.DataFrame(ROWS), polars.DataFrame(TABLE), pa.table(TABLE), Dataset.from_dict(TABLE),
    [{"문의": "언제 오나요", "text": "내일"}, {"문의": "좋아요", "text": "정말"}],
    [{"text": "언제 오나요", "pair": "내일"}, {"text": "좋아요", "pair": "정말"}],  # by role
    [{"sentence1": "언제 오나요", "sentence2": "내일"}, {"sentence1": "좋아요", "sentence2": "정말"}],
], ids=["pandas", "polars", "arrow", "datasets", "dicts", "roles", "usual names"])  # fmt: skip
def test_the_columns_of_training_are_read_and_else_those_of_roles(models, rows):
    expected = models["own"].predict([("언제 오나요", "내일"), ("좋아요", "정말")])
    found = models["own"].predict(rows)
    for one, own in zip(found, expected, strict=True):
        assert one.probabilities == pytest.approx(own.probabilities, abs=1e-6)


def test_choices_in_columns_of_their_own_are_those_of_a_list(models):
    columns = {"text": "비가 왔다", "보기1": "우산을 폈다", "보기2": "모자를 썼다"}
    named = {"text": "비가 왔다", "choices": ("우산을 폈다", "모자를 썼다")}
    assert models["choice"].predict(columns) == models["choice"].predict(named)


@pytest.mark.parametrize(("row", "said"), [
    ({"제목": "가"}, "no column 문의 or text among 제목: this model takes one of 2 labels"),
    ({"문의": "가"}, "no column text or pair among 문의: this model takes one of 2 labels"),
    ({"text": "가"}, "no column text or pair but for text: this model"),
    ({"문의": "가", "text": ["나"]}, "is a list, not a text: this model"),
])  # fmt: skip
def test_columns_that_a_model_lacks_are_named(models, row, said):
    with pytest.raises(SettingsError, match=said):
        models["own"].predict([row])


EMPTY = Label(None, {}, "the text is empty")


@pytest.mark.parametrize("empty", ["", " \t\u3000\n", None, math.nan])
def test_an_empty_text_gets_no_label(models, empty):
    assert models["mood"].predict([empty, "좋다"])[0] == EMPTY
    assert models["mood"].predict({"text": empty}) == EMPTY
    assert models["mood"].predict(pd.Series(["좋다", empty]))[1] == EMPTY
    assert models["own"].predict({"문의": "가", "text": empty}) == EMPTY
    assert math.isnan(models["score"].predict([empty])[0])
    assert models["choice"].predict({"text": empty, "choices": ["가", "나"]}) == Choice(None, [], "the text is empty")


def test_cells_of_pandas_without_a_value_get_no_label(models):
    frame = pd.DataFrame({"text": pd.array(["좋다", pd.NA], dtype="string")})
    assert models["mood"].predict(frame)[1] == EMPTY
