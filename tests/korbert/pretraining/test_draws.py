import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from korbert.pretraining.draws import Draws, ranges


def draws_of(epoch, numbers):
    return Draws.of(5, np.full(len(numbers), epoch), np.array(numbers, dtype=np.int64))


@given(
    rows=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 5)), min_size=1, max_size=20),
    skip=st.integers(0, 3),
    seed=st.integers(0, 9),
)
def test_what_a_row_draws_depends_on_it_alone(rows, skip, seed):
    numbers, counts = (np.array(column) for column in zip(*rows, strict=True))
    together = np.split(draws_of(1, numbers).uniform("cut", counts, skip=skip), np.cumsum(counts)[:-1])
    for number, count, values in zip(numbers, counts, together, strict=True):
        alone = draws_of(1, [number]).uniform("cut", np.array([count + skip]))
        assert np.array_equal(values, alone[skip:])
        assert not count or not np.array_equal(values, draws_of(2, [number]).uniform("cut", np.array([count])))
    order = np.random.default_rng(seed).permutation(len(rows))
    assert np.array_equal(draws_of(1, numbers).rows(order).uniform("a"), draws_of(1, numbers[order]).uniform("a"))


def test_draws_are_uniform_and_independent():
    many = draws_of(0, np.arange(200_000))
    columns = [many.uniform("a"), many.uniform("b"), draws_of(1, np.arange(200_000)).uniform("a")]
    columns += list(many.uniform("a", np.full(200_000, 3)).reshape(-1, 3).T[1:])
    for column in columns:
        assert kstest(column, "uniform").pvalue > 1e-3
    correlations = np.corrcoef([*columns, np.roll(columns[0], 1)])  # rows beside each other, too
    assert np.abs(correlations - np.eye(len(correlations))).max() < 0.01


def test_ranges_one_after_the_other():
    assert ranges(np.array([3, 9, 0]), np.array([2, 0, 3])).tolist() == [3, 4, 0, 1, 2]
    assert ranges(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
