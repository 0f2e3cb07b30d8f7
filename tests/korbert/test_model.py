"""A model in use: what it can do, what it refuses, and the folder that it writes and reads."""

import pytest

import korbert
from korbert.errors import ModelError, SettingsError
from korbert.model import Model
from korbert.modeling import models as networks
from korbert.modeling import save_model
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.kinds.classification import Classification, Label
from korbert.tasks.kinds.question_answering import QuestionAnswering
from korbert.tasks.kinds.token_classification import TokenClassification

MOOD = Classification(metrics=("accuracy",), max_length=32, labels=("부정", "긍정"))
READING = QuestionAnswering(metrics=("f1",))
SPANS = TokenClassification(
    metrics=("accuracy",), max_length=32, tags=("O", "B-PS", "I-PS"), units="characters", stride=8
)


@pytest.fixture(scope="module")
def models(tiny_tokenizer, tiny_config):
    config = tiny_config()
    return {
        "mood": Model(MOOD.model(config), tiny_tokenizer, MOOD, name="models/mood"),
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
