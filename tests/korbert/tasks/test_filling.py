"""Gaps filled: which pieces, and what the text is then."""

import subprocess
import sys
import unicodedata

import pytest
import torch

import korbert
from korbert.errors import ModelError
from korbert.model import Model
from korbert.modeling import PretrainingModel, save_model

TEXT = "오늘 [MASK] 정말 [MASK]다"


@pytest.fixture(scope="module")
def artifact(tiny_tokenizer, tiny_config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrain")
    network = PretrainingModel(tiny_config(num_hidden_layers=1), torch.Generator().manual_seed(3))
    save_model(folder / "model", network, tiny_tokenizer)
    return folder


@pytest.fixture(scope="module")
def filler(artifact):
    return Model.load(artifact, "cpu")


def test_gaps_are_filled(filler):
    alone = filler.fill(TEXT, top=3)
    assert [len(candidates) for candidates in alone] == [3, 3]
    assert filler.fill([TEXT, "[MASK]"], top=3) == [alone, filler.fill("[MASK]", top=3)]
    assert filler.fill([]) == []
    first, second = filler.fill(TEXT, top=3)
    for candidate in first:
        expected = f"오늘 {candidate.piece} 정말 {second[0].piece}다"
        assert candidate.text == unicodedata.normalize("NFC", expected.replace("▁", ""))
    assert first[0].text == second[0].text
    assert len({candidate.text for candidate in (*first, *second)}) == 5


@pytest.mark.slow
def test_texts_that_cannot_be_filled(filler, artifact):
    for text, said in (
        ("오늘", r"'오늘': has no \[MASK\]: write \[MASK\] where"),
        ("좋다 " * 600 + "[MASK]", r"has 1,\d+ pieces, the model reads 512: shorten it"),
    ):
        with pytest.raises(ModelError, match=said):
            filler.fill(text)
    # Scores that are no numbers name the model.
    filler = korbert.load(str(artifact), "cpu")
    with torch.no_grad():
        filler.network.encoder.embeddings.token.weight.fill_(float("inf"))
    with pytest.raises(ModelError, match=rf"{artifact}: its scores are not finite"):
        filler.fill("[MASK]")
    # Loading leaves out the compiler of torch, which takes two seconds to import, of every command.
    code = "import sys, korbert; korbert.load(sys.argv[1]); assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(artifact)], check=True)
