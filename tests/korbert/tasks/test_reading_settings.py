import pytest
from pydantic import ValidationError

from korbert.tasks.korquad.settings import KorquadSettings
from korbert.tasks.reading_settings import ReadingSettings


def test_the_stride_must_leave_windows_room_to_advance():
    with pytest.raises(
        ValidationError, match=r"leaves 60 pieces of context .* needs more than stride 64: raise max_length"
    ):
        ReadingSettings(max_length=128, stride=64)


SIZES = {
    "vocab_size": 512,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"init": "scratch"}, 'init is "scratch" and encoder is not set'),
        ({"encoder": SIZES}, 'init is "pretrain" and encoder is set'),
        (
            {"init": "scratch", "encoder": {**SIZES, "max_position_embeddings": 128}},
            "max_length 384 is more than the encoder's max_position_embeddings 128",
        ),
    ],
)
def test_an_encoder_goes_with_scratch_alone(given, message):
    with pytest.raises(ValidationError, match=message):
        KorquadSettings.model_validate(given)


def test_patterns_name_what_is_read():
    assert set(KorquadSettings(split_by_article=True).patterns()) == {"official"}
    assert set(KorquadSettings().patterns()) == {"train", "valid"}
    assert KorquadSettings(max_length=256).reading() == ReadingSettings(max_length=256)


WINDOWS = {"max_length": 384, "stride": 128, "max_query_pieces": 64, "max_answer_chars": 50, "n_best": 20}


def test_a_threshold_travels_with_the_reader():
    settings = ReadingSettings(unanswerable=True, threshold=-1.5)
    assert settings.model_dump() == {**WINDOWS, "unanswerable": True, "threshold": -1.5}
    assert ReadingSettings.model_validate(settings.model_dump()) == settings
    assert KorquadSettings().reading() == ReadingSettings()


def test_a_threshold_without_effect_is_refused():
    with pytest.raises(ValidationError, match=r"threshold 0\.5 is for unanswerable = true"):
        ReadingSettings(threshold=0.5)
    with pytest.raises(ValidationError, match="finite number"):
        ReadingSettings(unanswerable=True, threshold=float("nan"))


def test_keys_of_the_optimizer_that_are_not_given_keep_the_sections_defaults():
    optimizer = KorquadSettings.model_validate({"optimizer": {"kind": "muon"}}).optimizer
    assert (optimizer.learning_rate, optimizer.kind) == (3e-4, "muon")
    assert KorquadSettings().optimizer.learning_rate == 3e-4
