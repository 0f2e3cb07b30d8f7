"""Intervals and tests agree with scipy, and the fast ways with the slow ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from korbert.tasks.metrics import statistics as ours
from korbert.tasks.metrics.classification import confusion, macro_f1
from korbert.tasks.metrics.regression import pearson

RIGHT = np.random.default_rng(0).random(60) < 0.85
SKEWED = np.random.default_rng(1).exponential(size=40)


def _rng():
    return np.random.default_rng(7)


def _macro_f1(rows, counts=None):
    return macro_f1(confusion(rows[:, 0], rows[:, 1], 3, counts))


@pytest.mark.parametrize("values", [RIGHT, SKEWED], ids=["right or wrong", "numbers"])
def test_interval_of_a_mean(values):
    """Drawn together or one by one, it is scipy's interval, up to what 40,000 resamples leave open."""
    fast = ours.bootstrap_interval(values, rng=_rng(), resamples=40_000)
    expected = stats.bootstrap((values,), np.mean, n_resamples=40_000, method="percentile", rng=_rng())
    grain = 1.1 / len(values) if values.dtype == bool else 0.01
    assert fast[:2] == pytest.approx(tuple(expected.confidence_interval), abs=grain)
    assert fast.standard_error == pytest.approx(expected.standard_error, rel=0.03)


@pytest.mark.parametrize("count", [60, 400], ids=["drawn one by one", "drawn together"])
def test_interval_of_any_score(count):
    rows = np.random.default_rng(2).integers(0, 3, size=(count, 2))
    found = ours.bootstrap_interval(rows, _macro_f1, rng=_rng(), resamples=4000)
    how = {"n_resamples": 4000, "vectorized": False, "method": "percentile", "rng": _rng()}
    expected = stats.bootstrap((np.arange(count),), lambda chosen: _macro_f1(rows[chosen]), **how)
    assert found[:2] == pytest.approx(tuple(expected.confidence_interval), abs=0.12 * expected.standard_error)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=0.05)


def test_constant_and_undefined_scores_and_large_samples():
    assert ours.bootstrap_interval(np.ones(30), rng=_rng()) == (1, 1, 0)
    score = ours.repeated(lambda rows: pearson(*rows.T))
    rows = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 2.0]])  # a resample of three equal rows has no correlation
    assert ours.bootstrap_interval(rows, score, rng=_rng()) is None
    assert ours.permutation_p_value(rows[:2], rows[:2], score, rng=_rng()) is None
    for side in (rows, rows[:2]):
        assert ours.compare([side], [side], score, rng=_rng()) is None
    values = np.random.default_rng(3).random(300_000)
    found = ours.bootstrap_interval(values, rng=_rng(), resamples=40)  # drawn in batches
    assert found.standard_error == pytest.approx(values.std() / len(values) ** 0.5, rel=0.5)


@given(scores=st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_over_seeds(scores):
    assert ours.over_seeds(scores[:1]) == (scores[0], None, None, None)
    found = ours.over_seeds(scores)
    assert (found.mean, found.deviation) == pytest.approx((np.mean(scores), np.std(scores, ddof=1)))
    if np.std(scores) > 1e-6:
        expected = stats.ttest_1samp(scores, 0).confidence_interval()
        assert (found.low, found.high) == pytest.approx(tuple(expected))


@settings(max_examples=20)
@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_permutations_agree_with_all_of_them(rows):
    a, b = np.array(rows).T / 4
    expected = stats.permutation_test(
        (a, b),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
    ).pvalue
    for score in (ours.mean, ours.repeated(lambda rows: float(rows.mean()))):
        assert ours.permutation_p_value(a, b, score, rng=_rng(), resamples=1500) == pytest.approx(expected, abs=0.06)


def _runs(rng, share, seeds, count=400, spread=0):
    """Right or wrong; examples differ in how hard they are, and seeds by `spread`."""
    hard = np.random.default_rng(0).normal(0, 0.2, count)
    return [rng.random(count) < share + rng.normal(0, spread) + hard for _ in range(seeds)]


def _found(a, b):
    return ours.compare(a, b, rng=_rng())


def test_one_run_a_side_is_mcnemar_up_to_resampling():
    a, b = _runs(_rng(), 0.8, 1), _runs(_rng(), 0.7, 1)
    found = _found(a, b)
    only_a, only_b = (a[0] & ~b[0]).sum(), (b[0] & ~a[0]).sum()
    assert found.p_value == pytest.approx(stats.binomtest(only_a, only_a + only_b).pvalue, abs=0.01)
    assert found.difference == pytest.approx(a[0].mean() - b[0].mean())
    assert found.low < found.difference < found.high
    assert (found.runs, found.examples) == ((1, 1), 400)


@pytest.mark.parametrize("trials", [60, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("seeds", "spread"), [((1, 1), 0.0), ((3, 3), 0.02), ((1, 3), 0.02)])
def test_chance_is_rarely_called_more(seeds, spread, trials):
    rng = _rng()
    called = 0
    for _ in range(trials):
        a, b = (_runs(rng, 0.7, count, spread=spread) for count in seeds)
        found = ours.compare(a, b, rng=rng, resamples=200)
        called += found is not None and found.more_than_chance
    assert called / trials < 0.08


def test_seeds_count_as_chance():
    """What examples alone call a difference, two seeds that disagree do not."""
    alike, apart = np.zeros((2, 2000), bool), np.zeros((2, 2000), bool)
    alike[:, :1000] = apart[0, :1200] = apart[1, :1000] = True
    assert _found([apart[0]], [alike[0]]).more_than_chance
    two = _found(list(apart), list(alike))
    assert not two.more_than_chance
    assert two.low < 0 < two.difference < two.high


def test_equal_sides_and_unequal_examples():
    a = _runs(_rng(), 0.8, 1)
    assert _found(a, a).p_value == _found(a * 2, a * 2).p_value == 1
    sure = _found([np.ones(40)] * 2, [np.zeros(40)] * 2)
    assert (sure.low, sure.high, sure.p_value) == (1, 1, 0)
    one_example = _found([np.ones(1), np.zeros(1)], [np.zeros(1), np.zeros(1)])
    assert one_example.low < 0 < one_example.high
    with pytest.raises(ValueError, match=r"runs of \[3, 4\] examples: all must be on the same examples"):
        ours.compare([np.ones(3)], [np.ones(4)], rng=_rng())


def test_sentences():
    better = ours.PairedComparison(("small", "scratch"), (0.91, 0.9), (3, 3), 50_000, 0.004, 0.016, 0.0004)
    assert better.sentence == (
        "small (0.9100) scores higher than scratch (0.9000); this is more than chance "
        "(difference +0.0100, 95% interval +0.0040 to +0.0160, p < 0.001; 50,000 examples, 3 and 3 runs)."
    )
    unclear = ours.PairedComparison(("small", "scratch"), (0.9, 0.91), (1, 1), 100, -0.05, 0.03, 0.61).sentence
    assert unclear.startswith("small (0.9000) scores lower than scratch (0.9100); this may be chance (difference -0.01")
    assert unclear.endswith("p = 0.610; 100 examples, one run each: other seeds may differ).")
    equal = ours.PairedComparison(("small", "scratch"), (0.9, 0.9), (1, 1), 100, -0.05, 0.03, 1.0).sentence
    assert "small (0.9000) equals scratch (0.9000)" in equal
