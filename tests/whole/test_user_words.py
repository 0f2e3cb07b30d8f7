"""A recipe with a user's dictionary: whole in morphemes, vocabulary and tokenizer, and part of what must not drift."""

import shutil

from korbert.tokenization import Tokenizer
from tests.whole.conftest import Whole


def test_words_go_from_the_recipe_to_the_tokenizer(data, whole, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(data, folder)
    (folder / "words.tsv").write_text("# ours\n삐까뻔쩍체\n", encoding="utf-8")
    made = Whole(folder / "tiny.toml", tmp_path / "artifacts")
    shutil.copytree(whole.folder / "clean", made.folder / "clean")
    command = ("run", "--to", "vocab", "--workers", "1", "--set", "analyze.user_words=words.tsv")

    made.run(*command)
    assert (made.folder / "analyze" / "user_words.tsv").read_bytes() == (folder / "words.tsv").read_bytes()
    tokenizer = Tokenizer.load(made.folder / "vocab" / "tokenizer")
    assert "삐까뻔쩍체" in tokenizer.encode("삐까뻔쩍체로 썼다").pieces
    assert made.record("vocab")["counts"]["size"] == 1_600

    (folder / "words.tsv").write_text("삐까뻔쩍체\n뽀글이\n", encoding="utf-8")
    assert "words.tsv" in made.run(*command, code=2).err
