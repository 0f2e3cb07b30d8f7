"""Scores of several labels a text agree with scikit-learn."""

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
