"""Going on from a pretrained model with other text, words that are added to it, and words of a user dictionary."""

import json
import math
import shutil

import pytest

from korbert import load
from korbert.modeling.files.storage import load_model, read_config
from korbert.tokenization import Tokenizer
from tests.korbert.tiny import json_lines
from tests.whole.conftest import MODEL, Whole


@pytest.fixture
def onward(whole, tmp_path):
    """Makes a recipe that goes on from the model of `whole`, with clean and analyze made already."""

    usual = ("size = 1_600", f'tokenizer = "{MODEL}"'), ("[pretrain]", f'[pretrain]\ninit = "{MODEL}"')
    fewer = ("steps = 40", "steps = 20")
    return lambda *changes: whole.changed(tmp_path, (*usual, fewer, *changes), ["clean", "analyze"])


def run(made, *options, code=0):
    return made.run("run", "--to", "pretrain", "--workers", "1", *options, code=code)


def scores(made):
    return json.loads((made.folder / "pretrain" / "scores.json").read_text(encoding="utf-8"))


def test_training_begins_where_the_model_ended(onward, whole, tmp_path):
    made = onward()
    said = run(made)
    before, after = scores(whole), scores(made)
    assert "init_mlm_loss" not in before
    for name in ("mlm_loss", "mlm_accuracy"):
        assert after[f"init_{name}"] == pytest.approx(before[name], rel=1e-6)
    assert (after["unigram_loss"], after["mlm_count"]) == (before["unigram_loss"], before["mlm_count"])
    assert after["mlm_loss"] < before["mlm_loss"]
    # The tokenizer is the same; the record has the files that were begun with.
    digest = read_config(whole.folder / "pretrain")["tokenizer_digest"]
    assert read_config(made.folder / "pretrain")["tokenizer_digest"] == digest
    assert made.record("vocab")["counts"]["added"] == 0
    names = [file["name"] for file in made.record("pretrain")["inputs"]["files"]["init"]]
    assert names[:2] == [f"{MODEL}/model/config.json", f"{MODEL}/model/model.safetensors"]
    assert f"{MODEL}/model/tokenizer/vocabulary.model" in names
    assert not any("stage.json" in name or "report" in name for name in names)
    assert "before training" in said.out.replace("\n", " ")
    samples = json_lines(made.folder / "pretrain" / "samples.jsonl")  # guesses before training beside those after it
    assert [line["step"] for line in samples[:3]] == [0] * 3
    assert [line["row"] for line in samples[-3:]] == [line["row"] for line in samples[:3]]
    # A run with nothing to do, which needs no model; another model is drift.
    source = made.recipe.parent / MODEL
    source.rename(tmp_path / "away")
    run(made)
    shutil.copytree(made.folder / "pretrain", source)
    refused = run(made, code=2).err
    assert "pretrain: is not what" in refused
    assert "inputs.files.init" in refused


def test_words_are_added(onward, whole):
    made = onward(("tokenizer =", 'words = ["삐까뻔쩍체"]\nadd = 30\ntokenizer ='))
    run(made)
    old, base = load_model(whole.folder / "pretrain", "pretraining")
    model, tokenizer = load_model(made.folder / "pretrain", "pretraining")
    assert made.record("vocab")["counts"]["added"] == 31 == tokenizer.vocab_size - base.vocab_size
    assert model.config.vocab_size == tokenizer.vocab_size == old.config.vocab_size + 31
    record = json.loads((made.folder / "pretrain/model/tokenizer/korbert_tokenizer.json").read_text(encoding="utf-8"))
    assert record["base"] == base.digest != record["digest"] == tokenizer.digest
    assert tokenizer.ids_of("삐까뻔쩍체") == (base.vocab_size,)
    for word in tokenizer.settings.words:
        assert len(tokenizer.ids_of(word)) == 1 < len(base.ids_of(word))

    found = scores(made)
    assert found["mlm_loss"] < found["init_mlm_loss"] < math.log(tokenizer.vocab_size)  # that of a drawn model
    assert load(made.folder / "pretrain").fill("오늘 [MASK] 정말 좋다.")


def nothing_was_made(made):
    return sorted(path.name for path in made.folder.iterdir() if path.is_dir()) == ["analyze", "clean"]


def test_what_does_not_fit_is_refused_before_anything_starts(onward):
    made = onward()

    def refusal(*changes):
        options = [word for change in changes for word in ("--set", change)]
        errors = run(made, *options, code=None).err + run(made, "--dry-run", *options, code=None).err
        assert nothing_was_made(made)
        return errors

    said = "hidden_size: 64 in the recipe, 32 in the model; layer_norm_eps: 0.001 in the recipe, 1e-05 in"
    assert said in refusal("pretrain.encoder.hidden_size=64", "pretrain.encoder.layer_norm_eps=1e-3")
    assert "pretrain.init: no folder nowhere in" in refusal("pretrain.init=nowhere")
    assert "vocab.tokenizer: no folder nowhere in" in refusal("vocab.tokenizer=nowhere")
    assert "is no model, but has some below: give" in refusal("pretrain.init=before")
    assert "is an artifact of this recipe: name another" in refusal(f"pretrain.init={made.folder / 'clean'}")
    (made.recipe.parent / MODEL / "model" / "tokenizer" / "vocabulary.model").write_bytes(b"?")
    assert "vocabulary.model: was changed (SHA-256" in refusal()


def test_a_teacher_that_does_not_fit_is_refused_before_anything_starts(onward):
    distill = f'objectives = ["mlm", "distill"]\n[pretrain.distill]\nteacher = "{MODEL}"\nbegin = false\n'
    changes = {f'[pretrain]\ninit = "{MODEL}"': "[pretrain]", "[pretrain.encoder]": f"{distill}[pretrain.encoder]"}
    made = onward(*changes.items())
    size = "its vectors have 32 dimensions, those of pretrain.encoder 64: set pretrain.distill.cosine = 0"
    assert size in run(made, "--set", "pretrain.encoder.hidden_size=64", code=2).err
    assert "does not know the words that vocab.add adds" in run(made, "--set", "vocab.add=9", code=2).err
    assert nothing_was_made(made)


def test_another_tokenizer_is_refused(onward):
    """One that is learned is known when it has been learned; one that is taken, at once."""
    made = onward((f'tokenizer = "{MODEL}"', "size = 1_500"))
    reason = "(another vocabulary was learned): set vocab.tokenizer to the same folder"
    assert reason in run(made, code=1).err
    shutil.rmtree(made.folder / "shard")
    assert reason in run(made, code=2).err
    assert not (made.folder / "shard").exists()  # refused at once, now that vocab is there
    other = made.folder / "vocab" / "tokenizer"
    digest = Tokenizer.load(other).digest[:12]
    shutil.copytree(other, made.recipe.parent / "other")
    for stage in ("vocab", "pretrain.partial"):
        shutil.rmtree(made.folder / stage)
    text = made.recipe.read_text(encoding="utf-8")
    made.recipe.write_text(text.replace("size = 1_500", 'tokenizer = "other"'), encoding="utf-8")
    said = run(made, code=2).err
    assert f"the one of vocab, {digest}, is neither the same nor an extension of it" in said
    assert "(another vocabulary was learned)" in said
    assert nothing_was_made(made)


def test_words_go_from_the_recipe_to_the_tokenizer(data, whole, tmp_path):
    """Whole in morphemes, vocabulary and tokenizer, and part of what must not drift."""
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
