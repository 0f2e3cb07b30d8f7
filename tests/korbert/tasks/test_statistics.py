"""Intervals and tests agree with scipy, the fast ways with the slow ones, and the same seed gives the same numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from korbert.tasks.metrics import confusion, macro_f1
from korbert.tasks.metrics.regression import pearson
from korbert.tasks.metrics.statistics import bootstrap_interval, over_seeds, permutation_p_value, repeated

RIGHT = np.random.default_rng(0).random(60) < 0.85
SKEWED = np.random.default_rng(1).exponential(size=40)


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _macro_f1(rows: np.ndarray, counts: np.ndarray | None = None) -> float:
    return macro_f1(confusion(rows[:, 0], rows[:, 1], 3, counts))


@pytest.mark.parametrize("method", ["percentile", "BCa"])
@pytest.mark.parametrize("values", [RIGHT, SKEWED], ids=["right or wrong", "numbers"])
def test_interval_of_a_mean(values: np.ndarray, method: str) -> None:
    """Drawn together or one by one, it is scipy's interval, up to what 40,000 resamples leave open."""
    fast = bootstrap_interval(values, rng=_rng(), resamples=40_000, method=method)
    expected = stats.bootstrap((values,), np.mean, n_resamples=40_000, method=method, rng=_rng())
    grain = 1.1 / len(values) if values.dtype == bool else 0.01
    assert fast[:2] == pytest.approx(tuple(expected.confidence_interval), abs=grain)
    assert fast.standard_error == pytest.approx(expected.standard_error, rel=0.03)


@pytest.mark.parametrize("method", ["percentile", "BCa"])
@pytest.mark.parametrize("count", [60, 400], ids=["drawn one by one", "drawn together"])
def test_interval_of_any_score(count: int, method: str) -> None:
    rows = np.random.default_rng(2).integers(0, 3, size=(count, 2))
    found = bootstrap_interval(rows, _macro_f1, rng=_rng(), resamples=4000, method=method)
    expected = stats.bootstrap(
        (np.arange(count),), lambda chosen: _macro_f1(rows[chosen]), n_resamples=4000, vectorized=False, method=method,
        rng=_rng(),
    )  # fmt: skip
    assert found[:2] == pytest.approx(tuple(expected.confidence_interval), abs=0.12 * expected.standard_error)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=0.05)


def test_interval_covers_as_often_as_it_says() -> None:
    rng = _rng()
    covered = 0
    for _ in range(400):
        found = bootstrap_interval(rng.random(200) < 0.7, rng=rng, resamples=500)
        covered += found.low <= 0.7 <= found.high
    assert 0.91 < covered / 400 < 0.98


@pytest.mark.parametrize("method", ["percentile", "BCa"])
@pytest.mark.parametrize("score", [None, repeated(lambda rows: float(rows.mean()))])
def test_constant_scores_have_an_interval_of_one_point(method: str, score: object) -> None:
    assert bootstrap_interval(np.ones(30), score, rng=_rng(), method=method) == (1, 1, 0)


def test_undefined_scores_have_no_interval() -> None:
    rows = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 2.0]])  # a resample of three equal rows has no correlation
    assert bootstrap_interval(rows, repeated(lambda rows: pearson(*rows.T)), rng=_rng()) is None


def test_large_samples_are_drawn_in_batches() -> None:
    values = np.random.default_rng(3).random(300_000)
    found = bootstrap_interval(values, rng=_rng(), resamples=40)
    assert found.standard_error == pytest.approx(values.std() / len(values) ** 0.5, rel=0.5)
    rows = np.arange(400_000)
    of_rows = bootstrap_interval(rows, repeated(lambda rows: float(rows.mean())), rng=_rng(), resamples=20)
    assert of_rows.standard_error == pytest.approx(rows.std() / len(rows) ** 0.5, rel=0.5)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@given(scores=st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_over_seeds(confidence: float, scores: list[float]) -> None:
    found = over_seeds(scores, confidence=confidence)
    assert found.mean == pytest.approx(np.mean(scores))
    assert found.deviation == pytest.approx(np.std(scores, ddof=1))
    if np.std(scores) > 1e-6:
        expected = stats.ttest_1samp(scores, 0).confidence_interval(confidence)
        assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_one_seed_has_no_deviation() -> None:
    assert over_seeds([0.5]) == (0.5, None, None, None, 1)


def _exact_p_value(a: np.ndarray, b: np.ndarray) -> float:
    def difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return x.mean(axis=axis) - y.mean(axis=axis)

    return float(stats.permutation_test((a, b), difference, permutation_type="samples", n_resamples=np.inf).pvalue)


@settings(max_examples=20)
@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_permutations_agree_with_all_of_them(rows: list[tuple[int, int]]) -> None:
    a, b = np.array(rows).T / 4
    expected = _exact_p_value(a, b)
    assert permutation_p_value(a, b, rng=_rng(), resamples=20_000) == pytest.approx(expected, abs=0.02)
    slow = permutation_p_value(a, b, repeated(lambda rows: float(rows.mean())), rng=_rng(), resamples=1500)
    assert slow == pytest.approx(expected, abs=0.06)


def test_permutations_of_any_score() -> None:
    """Rows keep label and prediction together; a run that is right more often has the better F1, beyond chance."""
    labels = np.random.default_rng(4).integers(0, 3, size=300)
    noise = np.random.default_rng(5).integers(0, 3, size=(2, 300))
    better = np.stack([labels, np.where(np.arange(300) % 4, labels, noise[0])], axis=1)
    worse = np.stack([labels, np.where(np.arange(300) % 2, labels, noise[1])], axis=1)
    assert permutation_p_value(better, worse, _macro_f1, rng=_rng(), resamples=200) == pytest.approx(1 / 201)
    assert permutation_p_value(better, better, _macro_f1, rng=_rng(), resamples=50) == 1


def test_permutations_of_an_undefined_score() -> None:
    rows = np.array([[1.0, 2.0], [1.0, 3.0]])
    assert permutation_p_value(rows, rows, repeated(lambda rows: pearson(*rows.T)), rng=_rng()) is None


@pytest.mark.parametrize("score", [None, _macro_f1])
def test_the_same_seed_gives_the_same_numbers(score: object) -> None:
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 3, size=(2, 50, 2)) if score else rng.random((2, 50))
    intervals = [bootstrap_interval(a, score, rng=_rng(), resamples=99) for _ in range(2)]
    p_values = [permutation_p_value(a, b, score, rng=_rng(), resamples=99) for _ in range(2)]
    assert intervals[0] == intervals[1]
    assert p_values[0] == p_values[1]
