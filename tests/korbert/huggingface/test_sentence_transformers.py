"""Exported models of sentence vectors: the files of sentence-transformers, and the vectors that they lead to."""

import json

import numpy as np
import pytest
import torch
from exported import FAMILIES, small

from korbert.huggingface.check import TEXTS, TOLERANCE
from korbert.huggingface.exporting import export
from korbert.model import Model
from korbert.modeling.heads import initialize
from korbert.modeling.models import EmbeddingModel, PretrainingModel
from korbert.modeling.storage import save_model


def checked(folder, tokenizer, family, pooling, normalize):
    """The export of a new model, compared through AutoModel, and ours in use."""
    config = small(tokenizer, family, initializer_range=0.4)
    model = EmbeddingModel(config, pooling, normalize)
    initialize(model, config, torch.Generator().manual_seed(5))
    save_model(folder / "ours", model, tokenizer, {"max_length": 40})
    differences = export(folder / "ours", folder / "theirs", check=True)
    assert differences.keys() == {"last_hidden_state"}
    assert differences["last_hidden_state"] <= TOLERANCE
    assert json.loads((folder / "theirs" / "config.json").read_text())["model_type"] == family
    return folder / "theirs", Model.load(folder / "ours", "cpu")


def test_files_name_modules_pooling_and_length(tiny_tokenizer, tmp_path):
    folder, _ = checked(tmp_path, tiny_tokenizer, "bert", "mean", True)
    modules = json.loads((folder / "modules.json").read_text())
    assert [(module["idx"], module["path"], module["type"].rpartition(".")[2]) for module in modules] == [
        (0, "", "Transformer"), (1, "1_Pooling", "Pooling"), (2, "2_Normalize", "Normalize"),
    ]  # fmt: skip
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert pooling["word_embedding_dimension"] == 16
    assert [name for name, value in pooling.items() if value is True] == ["pooling_mode_mean_tokens"]
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == 40
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 40


def test_files_go_with_the_next_export_of_another_kind(tiny_tokenizer, tmp_path):
    folder, ours = checked(tmp_path, tiny_tokenizer, "bert", "first", True)
    export(tmp_path / "ours", folder)  # again
    assert (folder / "1_Pooling" / "config.json").is_file()
    save_model(tmp_path / "pretraining", PretrainingModel(ours.network.config), tiny_tokenizer)
    export(tmp_path / "pretraining", folder)
    names = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert not any("1_Pooling" in name or "modules" in name or "sentence" in name for name in names)


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", False), ("mean", True), ("first", False)])
@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_transformers_gives_the_vectors(tiny_tokenizer, tmp_path, family, pooling, normalize):
    package = pytest.importorskip("sentence_transformers")
    folder, ours = checked(tmp_path, tiny_tokenizer, family, pooling, normalize)
    theirs = package.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    assert theirs.max_seq_length == 40
    assert theirs.similarity_fn_name == "cosine"
    np.testing.assert_allclose(theirs.encode(list(TEXTS)), ours.embed(TEXTS), atol=TOLERANCE)
