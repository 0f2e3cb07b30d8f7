"""Correlations and F1 at a threshold agree with scipy and scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import f1_score

from korbert.tasks.metrics.regression import f1_at_3, mean_absolute_error, pearson, spearman

SIMILARITIES = st.floats(0, 5).map(lambda value: round(value, 1))  # as in KLUE-STS: many are equal
PAIRS = st.lists(st.tuples(SIMILARITIES, SIMILARITIES), min_size=2, max_size=40)


@given(pairs=PAIRS)
def test_correlations_and_f1_at_a_threshold(pairs):
    targets, predictions = np.array(pairs).T
    for score, oracle in ((pearson, stats.pearsonr), (spearman, stats.spearmanr)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.ConstantInputWarning)
            expected = oracle(targets, predictions)[0]
        found = score(targets, predictions)
        assert found is None if np.isnan(expected) else found == pytest.approx(expected, abs=1e-9)
    targets, predictions = np.array(pairs).T
    assert f1_at_3(targets, predictions) == pytest.approx(f1_score(targets >= 3, predictions >= 3, zero_division=0))


def test_undefined_correlations_and_the_mean_absolute_error():
    assert pearson(np.array([1.0]), np.array([2.0])) is None
    assert pearson(np.array([0.1, 0.1, 0.1]), np.array([1.0, 2.0, 3.0])) is None
    assert mean_absolute_error(np.array([1, 2, 3]), np.array([1.5, 2.0, 5.5])) == pytest.approx(1.0)
