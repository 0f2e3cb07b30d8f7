"""Figures of a search: as their definitions give them, and scikit-learn's nDCG."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from korbert.search import Hit, Index
from korbert.search.evaluation import METRICS, evaluate


def test_figures_are_those_of_the_definitions():
    rng = np.random.default_rng(1)
    scores, relevant = rng.random((300, 250)), rng.random((300, 250)) < 0.01
    relevant[np.arange(300), rng.integers(250, size=300)] = True
    ids = [[str(text) for text in np.flatnonzero(row)] for row in relevant]

    def search(queries, top, way, reranker):
        """Texts by made scores: those of a query are a row."""
        rows = scores[list(map(int, queries))]
        return [[Hit(str(text), "", "", 0, 0, 0, 1, 1, 0, 0) for text in np.argsort(-row)[:top]] for row in rows]

    found = evaluate(SimpleNamespace(search=search), list(map(str, range(300))), ids, ["words"])
    ((figures, firsts),) = found.values()
    kept = np.where(scores >= np.sort(scores, axis=1)[:, -100:][:, :1], scores, -1)  # the first 100 count
    ranks = 1 + np.argsort(np.argsort(-scores))
    expected = [(((ranks <= k) & relevant).sum(axis=1) / relevant.sum(axis=1)).mean() for k in (1, 10, 100)]
    expected += [np.where(kept > -1, relevant / (1 + np.argsort(np.argsort(-scores))), 0).max(axis=1).mean()]
    expected += [ndcg_score(relevant, scores, k=10)]
    best = np.where(relevant, ranks, 300).min(axis=1)
    assert firsts == [rank if rank <= 100 else None for rank in best.tolist()]
    assert list(figures) == list(METRICS)
    for figure, value in zip(figures.values(), expected, strict=True):
        assert figure.value == pytest.approx(value)
        assert 0 < figure.value - figure.low < 0.1 > figure.high - figure.value > 0
    assert (relevant / ranks).max(axis=1).mean() == pytest.approx(figures["MRR"].value, abs=0.01)


def test_each_way_of_an_index_is_measured(encoder, tmp_path):
    made = Index.create(tmp_path / "index", encoder)
    made.add([("a", "대출을 신청하고 싶어요"), ("b", "카드를 잃어버렸어요"), ("c", "내일 비가 온다")])
    measured = evaluate(made, ["대출", "카드", "없는말"], [["a"], ["b", "nowhere"], {"c"}])
    assert set(measured) == {"both", "vectors", "words"}
    assert measured["words"].ranks == [1, 1, None]
    for way, name, value in (("words", "recall@1", 1.5), ("words", "MRR", 2), ("vectors", "recall@10", 2.5)):
        assert measured[way].figures[name].value == pytest.approx(value / 3)
    assert evaluate(made, ["대출"], [["a"]], ["words"])["words"].figures["MRR"] == (1, None, None)
