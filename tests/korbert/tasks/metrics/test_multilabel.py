"""Scores of several labels a text agree with scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, f1_score

from korbert.tasks.metrics.multilabel import exact_match, macro_f1, micro_f1


@given(both=st.integers(1, 12).flatmap(lambda count: arrays(bool, (2, count, 3))))
def test_any_labels_and_predictions(both):
    targets, predictions = both
    for average, score in (("micro", micro_f1), ("macro", macro_f1)):
        expected = f1_score(targets, predictions, average=average, zero_division=0)
        assert score(targets, predictions) == pytest.approx(expected)
    assert exact_match(targets, predictions) == pytest.approx(accuracy_score(targets, predictions))


def test_by_hand():
    targets = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], bool)
    predictions = np.array([[1, 0, 0], [0, 0, 0], [1, 0, 0]], bool)
    assert micro_f1(targets, predictions) == pytest.approx(2 * 2 / (3 + 2))
    assert macro_f1(targets, predictions) == pytest.approx(1 / 3)  # 1, 0, and 0 for the label that never occurs
    assert exact_match(targets, predictions) == pytest.approx(2 / 3)
