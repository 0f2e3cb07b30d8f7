"""Exported models of sentence vectors: the files of sentence-transformers, and the vectors that they lead to."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from korbert.huggingface.check import TEXTS, TOLERANCE
from korbert.huggingface.exporting import export
from korbert.model import Model
from korbert.modeling.config import EncoderConfig
from korbert.modeling.heads import initialize
from korbert.modeling.models import EmbeddingModel, PretrainingModel
from korbert.modeling.storage import save_model
from korbert.tokenization import Tokenizer

FAMILIES = {
    "bert": {"architecture": "bert"},
    "albert": {"architecture": "bert", "embedding_size": 12, "layer_groups": 1},
    "modernbert": {"architecture": "modern"},
    "korbert-modernbert": {"architecture": "modern", "boundary_embedding": True},
}


def exported(folder: Path, tokenizer: Tokenizer, family: str, pooling: str, normalize: bool) -> tuple[Path, Model]:
    """The export of a new model, checked, and ours in use."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24}
    config = EncoderConfig.model_validate(
        {
            "vocab_size": tokenizer.vocab_size, "max_position_embeddings": 320, "initializer_range": 0.4,
            **sizes, **FAMILIES[family],
        }
    )  # fmt: skip
    model = EmbeddingModel(config, pooling, normalize)  # type: ignore[arg-type]
    initialize(model, config, torch.Generator().manual_seed(5))
    save_model(folder / "ours", model, tokenizer, {"max_length": 40})
    differences = export(folder / "ours", folder / "theirs", check=True)
    assert differences.keys() == {"last_hidden_state"}
    assert differences["last_hidden_state"] <= TOLERANCE
    return folder / "theirs", Model.load(folder / "ours", "cpu")


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_auto_classes_and_pooling_give_the_vectors(
    tiny_tokenizer: Tokenizer, tmp_path: Path, family: str, pooling: str
) -> None:
    folder, ours = exported(tmp_path, tiny_tokenizer, family, pooling, False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model, report = transformers.AutoModel.from_pretrained(folder, output_loading_info=True, trust_remote_code=True)
    assert not any(report.values())
    assert load_file(folder / "model.safetensors").keys() == model.state_dict().keys()  # without a prefix
    assert model.config.model_type == family
    rows = tokenizer(list(TEXTS), padding=True, truncation=True, max_length=40, return_tensors="pt")
    hidden = model.eval()(**rows).last_hidden_state
    real = rows["attention_mask"][:, :, None]
    expected = (hidden * real).sum(1) / real.sum(1) if pooling == "mean" else hidden[:, 0]
    np.testing.assert_allclose(ours.embed(TEXTS), expected, atol=TOLERANCE)


def test_the_files(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder, _ = exported(tmp_path, tiny_tokenizer, "bert", "mean", True)
    modules = json.loads((folder / "modules.json").read_text())
    assert [(module["idx"], module["path"], module["type"].rpartition(".")[2]) for module in modules] == [
        (0, "", "Transformer"), (1, "1_Pooling", "Pooling"), (2, "2_Normalize", "Normalize"),
    ]  # fmt: skip
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert pooling["word_embedding_dimension"] == 16
    assert [name for name, value in pooling.items() if value is True] == ["pooling_mode_mean_tokens"]
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == 40
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 40


def test_another_export_leaves_no_such_files(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder, ours = exported(tmp_path, tiny_tokenizer, "bert", "first", True)
    export(tmp_path / "ours", folder)  # again
    assert (folder / "1_Pooling" / "config.json").is_file()
    save_model(tmp_path / "pretraining", PretrainingModel(ours.network.config), tiny_tokenizer)  # type: ignore[arg-type]
    export(tmp_path / "pretraining", folder)
    names = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert not any("1_Pooling" in name or "modules" in name or "sentence" in name for name in names)


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", False), ("mean", True), ("first", False)])
@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_transformers_gives_the_vectors(
    tiny_tokenizer: Tokenizer, tmp_path: Path, family: str, pooling: str, normalize: bool
) -> None:
    package = pytest.importorskip("sentence_transformers")
    folder, ours = exported(tmp_path, tiny_tokenizer, family, pooling, normalize)
    theirs = package.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    assert theirs.max_seq_length == 40
    assert theirs.similarity_fn_name == "cosine"
    np.testing.assert_allclose(theirs.encode(list(TEXTS)), ours.embed(TEXTS), atol=TOLERANCE)
