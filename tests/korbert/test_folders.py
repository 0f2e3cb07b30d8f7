"""Artifacts given for the models and tokenizers that they hold."""

from pathlib import Path

import pytest

from korbert.errors import ModelError
from korbert.folders import model_folder, tokenizer_folder


@pytest.fixture
def demo(tmp_path):
    """The folders of a recipe's artifacts, with empty files where the real ones are."""
    for name in (
        "clean/stage.json",
        "vocab/tokenizer/korbert_tokenizer.json",
        "pretrain/model/config.json",
        "pretrain/model/tokenizer/korbert_tokenizer.json",
        "korquad/model/config.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize("given", ["pretrain", "pretrain/model"])
def test_the_model_of_an_artifact_is_found(demo, given):
    assert model_folder(demo / given) == model_folder(str(demo / given)) == demo / "pretrain" / "model"
    assert tokenizer_folder(str(demo / given)) == demo / "pretrain" / "model" / "tokenizer"


@pytest.mark.parametrize("given", ["korbert-mimi", "models/korbert-minni"])
def test_a_misspelt_bundled_model_is_suggested(given):
    with pytest.raises(ModelError, match=f"{given}: no such folder: did you mean korbert-mini, which comes"):
        model_folder(given)
    assert model_folder("models/mood") == Path("models/mood")


@pytest.mark.parametrize("given", ["vocab", "vocab/tokenizer"])
def test_the_tokenizer_of_an_artifact_is_found(demo, given):
    assert tokenizer_folder(str(demo / given)) == demo / "vocab" / "tokenizer"


def test_a_folder_of_artifacts_is_refused_with_those_that_hold_one(demo):
    with pytest.raises(ModelError, match=r"is no model, but has some below: give \S+/korquad or \S+/pretrain$"):
        model_folder(demo)
    with pytest.raises(ModelError, match=r"is no tokenizer, but has some below: give \S+/pretrain or \S+/vocab$"):
        tokenizer_folder(demo)


@pytest.mark.parametrize("given", ["clean", "nowhere", "clean/stage.json"])
def test_a_folder_without_a_model_is_returned_unchanged(demo, given):
    assert model_folder(demo / given) == tokenizer_folder(demo / given) == demo / given
