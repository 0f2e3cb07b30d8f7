"""Exported models of sentence vectors: the files of sentence-transformers, and the vectors that they lead to."""

import json
from itertools import combinations

import numpy as np
import pytest
import torch
from exported import FAMILIES, TOLERANCE, differences, small

from korbert.huggingface.exporting import export
from korbert.model import Model
from korbert.modeling import EmbeddingModel, save_model
from korbert.modeling.onnx_export import TEXTS
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


@pytest.mark.filterwarnings("ignore")  # of mteb
def test_mteb_scores_the_vectors_as_we_do(tiny_tokenizer, tmp_path):
    mteb, stats = pytest.importorskip("mteb"), pytest.importorskip("scipy.stats")
    import datasets

    folder, ours = checked(tmp_path, tiny_tokenizer, "korbert-modernbert", "mean", True)
    pairs = list(combinations(TEXTS[:5], 2))
    scores = [float(len(set(one) & set(other))) for one, other in pairs]

    class Local(mteb.abstasks.AbsTaskSTS):
        metadata = mteb.TaskMetadata(
            name="LocalSTS", description="alike", dataset={"path": "local/none", "revision": "1"}, type="STS",
            category="t2t", modalities=["text"], eval_splits=["test"], eval_langs=["kor-Hang"],
            main_score="cosine_spearman", reference=None, bibtex_citation=None, date=None, domains=None, dialect=None,
            task_subtypes=None, license=None, annotations_creators=None, sample_creation=None,
        )  # fmt: skip
        min_score, max_score = 0, 99

        def load_data(self, **_):
            first, second = zip(*pairs, strict=True)
            columns = {"sentence1": first, "sentence2": second, "score": scores}
            self.dataset = datasets.DatasetDict({"test": datasets.Dataset.from_dict(columns)})
            self.data_loaded = True

    package = pytest.importorskip("sentence_transformers")
    theirs = package.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    result = mteb.evaluate(theirs, Local(), cache=None, co2_tracker=False)
    first, second = (ours.embed([pair[side] for pair in pairs]) for side in (0, 1))
    cosines = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    expected = stats.spearmanr(cosines, scores).statistic
    assert result.task_results[0].get_score() == pytest.approx(expected, abs=1e-4)
