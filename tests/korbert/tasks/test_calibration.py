"""What probabilities are worth: temperature and calibration error, against scikit-learn and by enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from korbert.errors import SettingsError
from korbert.tasks.kinds.classification import NOT_SURE, Classification
from korbert.tasks.linear import losses_of, scale_on
from korbert.tasks.metrics.calibration import expected_calibration_error

PROBABILITIES = arrays(np.float64, st.shared(st.integers(1, 40), key="rows"), elements=st.floats(0, 1))
OUTCOMES = arrays(np.bool_, st.shared(st.integers(1, 40), key="rows"))


def test_the_scale_is_the_inverse_of_scikit_learns_temperature():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(4_000, 5))
    targets = (columns @ rng.normal(size=(5, 3)) + rng.gumbel(size=(4_000, 3))).argmax(axis=1)
    learned = LogisticRegression(C=100).fit(columns[:60], targets[:60])  # too sure of itself
    columns, targets = columns[60:], targets[60:]
    calibrated = CalibratedClassifierCV(FrozenEstimator(learned), method="temperature").fit(columns, targets)
    scores = learned.decision_function(columns)
    scale = scale_on(scores, targets)
    assert scale < 0.9
    found = np.exp(-losses_of(scale * scores, targets))
    expected = calibrated.predict_proba(columns)[np.arange(len(targets)), targets]
    assert found == pytest.approx(expected, abs=2e-3)


def test_few_rows_hardly_change_the_scale():
    assert 1 < scale_on(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([0, 1])) < 1.3
    several = np.array([[2.0, -2.0], [2.0, -2.0]])
    assert 1 < scale_on(several, several > 0) < 1.5


@given(PROBABILITIES, OUTCOMES)
def test_the_calibration_error_is_that_of_its_definition(probabilities, outcomes):
    total = 0.0
    for number in range(15):
        inside = [
            (p, y) for p, y in zip(probabilities, outcomes, strict=True) if min(int(p * 15), 14) == number
        ]  # fmt: skip
        if inside:
            total += abs(sum(p for p, _ in inside) - sum(y for _, y in inside))
    assert expected_calibration_error(probabilities, outcomes) == pytest.approx(total / len(outcomes))


def mood(**fields):
    return Classification(labels=("싫", "좋"), metrics=("accuracy",), max_length=16, **fields)


def test_unsure_labels_are_not_given():
    kind = mood().abstaining(95)
    assert kind.prediction(np.array([0.96, 0.04]))["label"] == "싫"
    for unsure in ([0.94, 0.06], [0.06, 0.94]):
        prediction = kind.prediction(np.array(unsure))
        assert (prediction["label"], prediction["why"]) == (None, NOT_SURE)
        assert prediction["probabilities"] == dict(zip("싫좋", unsure, strict=True))


def test_of_several_labels_those_that_are_sure_are_given():
    kind = mood(several=True).abstaining(90)
    assert kind.prediction(np.array([0.95, 0.8]))["labels"] == ["싫"]
    assert kind.prediction(np.array([0.1, 0.8]))["labels"] is None
    assert kind.prediction(np.array([0.1, 0.2])) == {"labels": [], "probabilities": {"싫": 0.1, "좋": 0.2}}


@pytest.mark.parametrize("precision", [0, 100, -5])
def test_a_precision_is_a_percentage(precision):
    with pytest.raises(SettingsError, match="give a percentage above 0 and below 100"):
        mood().abstaining(precision)
