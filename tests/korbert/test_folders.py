"""Artifacts given for the models and tokenizers that they hold."""

from pathlib import Path

import pytest

from korbert.errors import ModelError
from korbert.folders import model_folder, tokenizer_folder


@pytest.fixture
def demo(tmp_path):
    """The folders of a recipe's artifacts, with empty files where the real ones are."""
    tokenizer = "tokenizer/korbert_tokenizer.json"
    files = ["clean/stage.json", "pretrain/model/config.json", "korquad/model/config.json", f"vocab/{tokenizer}"]
    for name in (*files, f"pretrain/model/{tokenizer}"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


def test_the_model_and_the_tokenizer_of_an_artifact(demo):
    """A folder without one is returned unchanged."""
    for folder, model, tokenizer in (
        ("pretrain", "pretrain/model", "pretrain/model/tokenizer"),
        ("pretrain/model", "pretrain/model", "pretrain/model/tokenizer"),
        ("vocab", "vocab", "vocab/tokenizer"),
        ("vocab/tokenizer", "vocab/tokenizer", "vocab/tokenizer"),
        *[(name, name, name) for name in ("clean", "nowhere", "clean/stage.json")],
    ):
        assert model_folder(demo / folder) == model_folder(str(demo / folder)) == demo / model
        assert tokenizer_folder(str(demo / folder)) == tokenizer_folder(demo / folder) == demo / tokenizer


def test_a_misspelt_bundled_model_is_suggested_and_a_folder_of_artifacts_refused_with_those_that_hold_one(demo):
    mini = "no such folder: did you mean korbert-mini, which comes"
    for find, place, said in (
        (model_folder, "korbert-mimi", f"korbert-mimi: {mini}"),
        (model_folder, "models/korbert-minni", f"models/korbert-minni: {mini}"),
        (model_folder, demo / "korquat", r"korquat: no such folder: did you mean \S+/korquad\?$"),
        (model_folder, demo, r"is no model, but has some below: give \S+/korquad or \S+/pretrain$"),
        (tokenizer_folder, demo, r"is no tokenizer, but has some below: give \S+/pretrain or \S+/vocab$"),
    ):
        with pytest.raises(ModelError, match=said):
            find(place)
    assert model_folder("models/mood") == Path("models/mood")
