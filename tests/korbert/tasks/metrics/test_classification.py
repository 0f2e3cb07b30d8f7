"""Scores of labels agree with scikit-learn, whatever the number of labels and which of them occur."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

from korbert.tasks.metrics import multilabel
from korbert.tasks.metrics.classification import METRICS, confusion, f1_of, micro_f1

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


@given(pairs=PAIRS, chosen=st.integers(0, 4))
def test_any_labels_and_predictions(pairs, chosen):
    """Also the micro F1 without a label, and the F1 of one."""
    labels, predictions = np.array(pairs).T
    counts = confusion(labels, predictions, 5)
    assert (counts == confusion_matrix(labels, predictions, labels=range(5))).all()
    assert METRICS["accuracy"](counts) == pytest.approx(accuracy_score(labels, predictions))
    assert METRICS["macro_f1"](counts) == pytest.approx(f1_score(labels, predictions, average="macro"))
    assert METRICS["micro_f1"](counts) == pytest.approx(f1_score(labels, predictions, average="micro"))
    others = [label for label in range(5) if label != chosen]
    expected = f1_score(labels, predictions, average="micro", labels=others, zero_division=0)
    assert micro_f1(counts, without=chosen) == pytest.approx(expected)
    expected = f1_score(labels == chosen, predictions == chosen, zero_division=0)
    assert f1_of(counts, chosen) == pytest.approx(expected)


@given(both=st.integers(1, 12).flatmap(lambda count: arrays(bool, (2, count, 3))))
def test_several_labels_a_text(both):
    targets, predictions = both
    for average, score in (("micro", multilabel.micro_f1), ("macro", multilabel.macro_f1)):
        expected = f1_score(targets, predictions, average=average, zero_division=0)
        assert score(targets, predictions) == pytest.approx(expected)
    assert multilabel.exact_match(targets, predictions) == pytest.approx(accuracy_score(targets, predictions))


def test_thresholds_are_those_of_the_best_f1():
    rng = np.random.default_rng(0)
    targets = rng.random((2_000, 2)) < (0.3, 0.05)
    scores = np.where(targets, 0.5, -1.5) + rng.normal(size=targets.shape)
    found = multilabel.thresholds(scores, targets)
    cuts = np.linspace(-4, 2, 61)
    best = [max(cuts, key=lambda cut: f1_score(targets[:, label], scores[:, label] > cut)) for label in (0, 1)]
    common = max(cuts, key=lambda cut: f1_score(targets, scores > cut, average="micro"))
    rows = targets.sum(axis=0)
    assert found == pytest.approx((rows * best + 100 * common) / (rows + 100))


def test_a_label_without_rows_has_the_common_threshold():
    targets = np.array([[True, False], [False, False], [True, False]])
    found = multilabel.thresholds(np.array([[0.0, -3.0], [-2.0, -3.0], [0.3, -3.0]]), targets)
    assert found[1] == pytest.approx(-2.0)
