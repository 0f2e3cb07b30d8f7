"""A recipe with a user's dictionary: whole in morphemes, vocabulary and tokenizer, and part of what must not drift."""

import json
import shutil
from pathlib import Path

import pytest

from korbert.tokenization import Tokenizer
from pipelines.cli import run_command
from tests.whole.conftest import Whole


def test_words_go_from_the_recipe_to_the_tokenizer(
    data: Path, whole: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(data, folder)
    words = folder / "words.tsv"
    words.write_text("# ours\n삐까뻔쩍체\n", encoding="utf-8")
    recipe = folder / "tiny.toml"
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace("[analyze]", '[analyze]\nuser_words = "words.tsv"'), encoding="utf-8")
    made = Whole(recipe, tmp_path / "artifacts")
    shutil.copytree(whole.folder / "clean", made.folder / "clean")

    def run(*options: str) -> int:
        return run_command(["run", str(recipe), "--root", str(made.root), "--to", "vocab", "--workers", "1", *options])

    assert run() == 0
    assert (made.folder / "analyze" / "user_words.tsv").read_bytes() == words.read_bytes()
    tokenizer = Tokenizer.load(made.folder / "vocab" / "tokenizer")
    assert "삐까뻔쩍체" in tokenizer.encode("삐까뻔쩍체로 썼다").pieces
    assert made.record("vocab")["counts"]["size"] == 1_600

    words.write_text("삐까뻔쩍체\n뽀글이\n", encoding="utf-8")
    capsys.readouterr()
    assert run() == 2
    assert "words.tsv" in capsys.readouterr().err
    assert json.loads((made.folder / "analyze" / "stage.json").read_text())["inputs"]["files"]["user_words"]
