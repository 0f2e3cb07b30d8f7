"""Exported models of sentence vectors: the files of sentence-transformers, and the vectors that they lead to."""

import json

import numpy as np
import pytest
import torch
from exported import FAMILIES, TOLERANCE, differences, small

from korbert.huggingface.exporting import export
from korbert.model import Model
from korbert.modeling import EmbeddingModel, save_model
from korbert.modeling.adapters.onnx_export import TEXTS
from korbert.tasks.kinds.embedding import Embedding


def checked(folder, tokenizer, family, pooling, normalize):
    """The export of a new model, compared through AutoModel, and ours in use."""
    config = small(tokenizer, family, initializer_range=0.4)
    kind = Embedding(metrics=("spearman",), max_length=40, learns="scores", pooling=pooling, normalize=normalize)
    model = EmbeddingModel(config, pooling, normalize, generator=torch.Generator().manual_seed(5))
    save_model(folder / "ours", model, tokenizer, kind.task())
    export(folder / "ours", folder / "theirs")
    assert list(differences(model.eval(), tokenizer, folder / "theirs")) == ["last_hidden_state"]
    assert json.loads((folder / "theirs" / "config.json").read_text())["model_type"] == family
    return folder / "theirs", Model.load(folder / "ours", "cpu")


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", False), ("mean", True), ("first", False)])
@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_transformers_gives_the_vectors(tiny_tokenizer, tmp_path, family, pooling, normalize):
    package = pytest.importorskip("sentence_transformers")
    folder, ours = checked(tmp_path, tiny_tokenizer, family, pooling, normalize)
    theirs = package.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    assert (theirs.max_seq_length, theirs.similarity_fn_name) == (40, "cosine")
    vectors = theirs.encode(list(TEXTS))
    np.testing.assert_allclose(vectors, ours.embed(TEXTS), atol=TOLERANCE)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_sentence_transformers_finds_the_prompts(tiny_tokenizer, tmp_path):
    package = pytest.importorskip("sentence_transformers")
    _, ours = checked(tmp_path, tiny_tokenizer, "bert", "mean", True)
    task = {
        "kind": "embedding",
        "metrics": ["mrr"],
        "max_length": 40,
        "learns": "pairs",
        "query_prompt": "질문: ",
        "passage_prompt": "문서: ",
    }
    save_model(tmp_path / "searching", ours.network, tiny_tokenizer, task)
    export(tmp_path / "searching", tmp_path / "exported")
    theirs = package.SentenceTransformer(str(tmp_path / "exported"), trust_remote_code=True, device="cpu")
    ours = Model.load(tmp_path / "searching", "cpu")
    texts = [text for text in TEXTS if text]
    for encode, side in ((theirs.encode_query, "query"), (theirs.encode_document, "passage"), (theirs.encode, None)):
        np.testing.assert_allclose(encode(texts), ours.embed(texts, side=side), atol=TOLERANCE)
