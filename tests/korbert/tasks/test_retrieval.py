"""Ranks of right passages, and BM25 as a baseline, against libraries and dense computations."""

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import rankdata

from korbert.tasks.kinds.rerank import Rerank
from korbert.tasks.retrieval import METRICS, Retrieval, bm25


def test_which_passages_are_searched():
    rows = [
        {"text": "q1", "pair": "a", "negatives": ["b", "x"]},
        {"text": "q2", "pair": "b", "negatives": None},
        {"text": "q1", "pair": "c"},
    ]
    found = Retrieval.of(rows)
    assert found.passages == ["a", "b", "x", "c"]
    assert found.own.tolist() == [0, 1, 3]
    assert {number: fits.tolist() for number, fits in found.fits.items()} == {0: [0, 3], 2: [0, 3]}
    scores = np.array([[2.0, 3.0, 0.0, 9.0], [1.0, 1.0, 0.0, 1.0], [5.0, 0.0, 1.0, 4.0]])
    assert found.ranks(lambda part: scores[part]).tolist() == [2, 3, 1]  # ties last, other right ones left out
    # A passage is no negative of itself.
    kind = Rerank(metrics=("mrr",), max_length=32)
    assert kind.texts({"text": "q", "pair": "a", "negatives": ["b", "a", "b"]}) == ["q", "a", "b"]
    with pytest.raises(ValueError, match="has no negatives, which"):
        kind.target({"text": "q", "pair": "a", "negatives": ["a"]})


@given(some.lists(some.lists(some.sampled_from("가나다라마바"), min_size=1, max_size=6), min_size=2, max_size=8))
def test_bm25_is_that_of_the_library(texts):
    theirs = bm25s.BM25(method="lucene", k1=1.2, b=0.75, dtype="float64")
    theirs.index(texts, show_progress=False)
    found = bm25(texts, texts)(slice(0, len(texts)))
    for query, row in zip(texts, found, strict=True):
        assert np.allclose(row, theirs.get_scores(query), atol=1e-6)


def test_metrics_are_those_of_dense_rankings():
    generator = np.random.default_rng(0)
    scores, own = generator.integers(0, 50, (40, 200)).astype(float), generator.integers(0, 200, 40)
    rows = [{"text": f"q{row}", "pair": f"p{column}"} for row, column in enumerate(own)]
    found = Retrieval.of([*rows, *({"text": "q", "pair": f"p{column}"} for column in range(200))])
    columns = [int(passage[1:]) for passage in found.passages]
    ranks = found.ranks(lambda part: np.resize(scores, (240, 200))[part][:, columns])[:40]
    expected = [201 - rankdata(row, "min")[column] for row, column in zip(scores, own, strict=True)]
    assert ranks.tolist() == expected
    assert METRICS["mrr"](ranks) == np.mean([1 / rank for rank in expected])
    assert METRICS["recall@10"](ranks) == np.mean([rank <= 10 for rank in expected])
