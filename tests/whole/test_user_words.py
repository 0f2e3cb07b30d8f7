"""A recipe with a user's dictionary: whole in morphemes, vocabulary and tokenizer, and part of what must not drift."""

import json
import shutil

from korbert.tokenization import Tokenizer
from tests.whole.conftest import Whole


def test_words_go_from_the_recipe_to_the_tokenizer(data, whole, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(data, folder)
    words = folder / "words.tsv"
    words.write_text("# ours\n삐까뻔쩍체\n", encoding="utf-8")
    recipe = folder / "tiny.toml"
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace("[analyze]", '[analyze]\nuser_words = "words.tsv"'), encoding="utf-8")
    made = Whole(recipe, tmp_path / "artifacts")
    shutil.copytree(whole.folder / "clean", made.folder / "clean")

    made.run("run", "--to", "vocab", "--workers", "1")
    assert (made.folder / "analyze" / "user_words.tsv").read_bytes() == words.read_bytes()
    tokenizer = Tokenizer.load(made.folder / "vocab" / "tokenizer")
    assert "삐까뻔쩍체" in tokenizer.encode("삐까뻔쩍체로 썼다").pieces
    assert made.record("vocab")["counts"]["size"] == 1_600

    words.write_text("삐까뻔쩍체\n뽀글이\n", encoding="utf-8")
    assert "words.tsv" in made.run("run", "--to", "vocab", "--workers", "1", code=2).err
    assert json.loads((made.folder / "analyze" / "stage.json").read_text())["inputs"]["files"]["user_words"]
