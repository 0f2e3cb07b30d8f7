"""Comparisons find what is there, and no more often than they say what is not."""

import numpy as np
import pytest
from scipy import stats

from korbert.tasks.metrics import confusion, macro_f1
from korbert.tasks.metrics.comparison import Comparison, compare
from korbert.tasks.metrics.regression import pearson
from korbert.tasks.metrics.statistics import repeated


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _runs(rng: np.random.Generator, share: float, seeds: int, count: int = 400, spread: float = 0) -> list[np.ndarray]:
    """Right or wrong; examples differ in how hard they are, and seeds by `spread`."""
    hard = np.random.default_rng(0).normal(0, 0.2, count)
    return [rng.random(count) < share + rng.normal(0, spread) + hard for _ in range(seeds)]


def _found(*args: object, **kwargs: object) -> Comparison:
    found = compare(*args, rng=_rng(), **kwargs)
    assert found is not None
    return found


def test_one_run_a_side_is_mcnemar() -> None:
    a, b = _runs(_rng(), 0.8, 1), _runs(_rng(), 0.7, 1)
    found = _found(a, b, names=("small", "scratch"))
    only_a, only_b = (a[0] & ~b[0]).sum(), (b[0] & ~a[0]).sum()
    assert found.p_value == stats.binomtest(only_a, only_a + only_b).pvalue
    assert found.difference == pytest.approx(a[0].mean() - b[0].mean())
    assert found.low < found.difference < found.high
    assert (found.runs, found.examples) == ((1, 1), 400)


def test_sides_change_places() -> None:
    a, b = _runs(_rng(), 0.8, 3), _runs(_rng(), 0.75, 2)
    one, other = _found(a, b), _found(b, a)
    assert other.difference == pytest.approx(-one.difference)
    assert other.p_value == pytest.approx(one.p_value, rel=0.3)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low), rel=0.2)


@pytest.mark.parametrize(("seeds", "spread"), [((1, 1), 0.0), ((3, 3), 0.02), ((1, 3), 0.02)])
def test_chance_is_rarely_called_more(seeds: tuple[int, int], spread: float) -> None:
    rng, called = _rng(), 0
    for _ in range(300):
        a, b = (_runs(rng, 0.7, count, spread=spread) for count in seeds)
        found = compare(a, b, rng=rng, resamples=200)
        called += found is not None and found.more_than_chance
    assert called / 300 < 0.08


def test_seeds_count_as_chance() -> None:
    """What examples alone call a difference, two seeds that disagree do not."""
    alike, apart = np.zeros((2, 2000), bool), np.zeros((2, 2000), bool)
    alike[:, :1000] = apart[0, :1200] = apart[1, :1000] = True
    one = _found([apart[0]], [alike[0]])
    assert one.more_than_chance
    two = _found(list(apart), list(alike))
    assert not two.more_than_chance
    assert two.low < 0 < two.difference < two.high


def test_any_score_agrees_with_the_mean() -> None:
    a, b = _runs(_rng(), 0.8, 2), _runs(_rng(), 0.7, 3)
    fast, slow = _found(a, b), _found(a, b, repeated(lambda rows: float(rows.mean())), resamples=1000)
    assert slow.scores == pytest.approx(fast.scores)
    assert (slow.low, slow.high) == pytest.approx((fast.low, fast.high), abs=0.004)
    assert slow.p_value == pytest.approx(fast.p_value, rel=0.5, abs=0.002)


def test_macro_f1_of_labels() -> None:
    labels = np.random.default_rng(1).integers(0, 3, 300)
    right = _runs(_rng(), 0.8, 2, 300)
    runs = [np.stack([labels, np.where(run, labels, (labels + 1) % 3)], axis=1) for run in right]
    found = _found(runs[:1], runs[1:], lambda rows, counts: macro_f1(confusion(*rows.T, 3, counts)), resamples=200)
    assert not found.more_than_chance
    assert found.low < found.difference < found.high


def test_undefined_scores_are_not_compared() -> None:
    rows = np.array([[1.0, 2.0], [1.0, 3.0]])
    assert compare([rows], [rows], repeated(lambda rows: pearson(*rows.T)), rng=_rng()) is None
    some = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 1.0]])  # defined, but not on every resample
    assert compare([some], [some], repeated(lambda rows: pearson(*rows.T)), rng=_rng()) is None


def test_equal_sides() -> None:
    a = _runs(_rng(), 0.8, 1)
    assert _found(a, a).p_value == _found(a * 2, a * 2).p_value == 1
    sure = _found([np.ones(40)] * 2, [np.zeros(40)] * 2)
    assert (sure.low, sure.high, sure.p_value) == (1, 1, 0)


def test_runs_must_be_on_the_same_examples() -> None:
    with pytest.raises(ValueError, match=r"runs of \[3, 4\] examples: all must be on the same examples"):
        compare([np.ones(3)], [np.ones(4)], rng=_rng())


def test_sentences() -> None:
    better = Comparison(("small", "scratch"), (0.91, 0.9), (3, 3), 50_000, 0.004, 0.016, 0.0004, 0.95)
    assert better.sentence == (
        "small (0.9100) scores higher than scratch (0.9000); this is more than chance "
        "(difference +0.0100, 95% interval +0.0040 to +0.0160, p < 0.001; 50,000 examples, 3 and 3 runs)."
    )
    unclear = Comparison(("small", "scratch"), (0.9, 0.91), (1, 1), 100, -0.05, 0.03, 0.61, 0.95)
    assert unclear.sentence == (
        "small (0.9000) scores lower than scratch (0.9100); this may be chance "
        "(difference -0.0100, 95% interval -0.0500 to +0.0300, p = 0.610; 100 examples, "
        "one run each: other seeds may differ)."
    )
    assert (
        "small (0.9000) equals scratch (0.9000)"
        in Comparison(("small", "scratch"), (0.9, 0.9), (1, 1), 100, -0.05, 0.03, 1.0, 0.95).sentence
    )
