"""Ranked documents: nDCG agrees with scikit-learn, recall and MRR with an implementation of one line a rank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import ndcg_score

from korbert.tasks.metrics.ranking import ndcg_at, recall_at, reciprocal_rank

SHAPES = st.tuples(st.just(2), st.integers(1, 4), st.integers(2, 7))
TABLES = SHAPES.flatmap(lambda shape: arrays(np.int64, shape, elements=st.integers(0, 4)))


@given(tables=TABLES, k=st.integers(1, 8))
def test_ndcg(tables, k):
    scores, gains = tables[0].astype(float), tables[1]
    for found, row, gain in zip(ndcg_at(k, scores, gains), scores, gains, strict=True):
        assert found == pytest.approx(ndcg_score([gain], [row], k=k))


@given(tables=TABLES, k=st.integers(1, 8))
def test_recall_and_reciprocal_rank(tables, k):
    scores, relevant = tables[0].astype(float), tables[1] > 2
    for row, wanted, recall, first in zip(
        scores, relevant, recall_at(k, scores, relevant), reciprocal_rank(scores, relevant), strict=True
    ):
        ranks = [int((row >= score).sum()) for score in row[wanted]]
        assert recall == pytest.approx(sum(rank <= k for rank in ranks) / len(ranks) if ranks else 0)
        assert first == pytest.approx(1 / min(ranks) if ranks else 0)
