from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.errors import SettingsError
from korbert.pretraining import Shards
from korbert.pretraining.mixing import Mixture, permute
from korbert.seeds import derived_seed
from tests.korbert.pretraining.conftest import rows_of, write_shards


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """30 rows of wiki, 10 of reviews, 10 more of wiki, 5 of news: a source may have several runs."""
    runs = ("wiki", 30), ("reviews", 10), ("wiki", 10), ("news", 5)
    documents = [(name, [4]) for name, count in runs for _ in range(count)]
    return Shards(write_shards(tmp_path_factory.mktemp("mixed"), documents).files)


def order(shards, shares, epochs, key=7):
    mixture = Mixture(shards, shards.edges[:-1], shares, key)
    return [drawn(mixture, epoch, np.arange(len(shards))) for epoch in range(epochs)]


def drawn(mixture, epoch, places):
    epochs, numbers = mixture.rows(epoch, places)
    return list(zip(epochs.tolist(), numbers.tolist(), strict=True))


def source(shards, number):
    return shards.source_names[shards.sources[number]]


def test_without_shares_every_row_comes_once_however_they_are_drawn(mixed):
    (rows,) = order(mixed, {}, 1)
    assert rows == [(0, number) for number in permute(np.arange(55), 55, derived_seed(7, 0)).tolist()]
    mixture = Mixture(mixed, mixed.edges[:-1], {"reviews": 0.5}, 7)
    one_by_one = [row for place in range(55) for row in drawn(mixture, 3, np.array([place]))]
    assert one_by_one == drawn(mixture, 3, np.arange(55))


@given(st.floats(0, 0.6), st.floats(0, 0.4), st.integers(1, 6))
def test_epochs_have_the_shares_and_use_all_rows_equally_often(mixed, reviews, news, epochs):
    """Each epoch has the shares; no row of a source is seen n + 1 times before all of them are seen n times."""
    orders = order(mixed, {"reviews": reviews, "news": news}, epochs)
    for rows in orders:
        counts = Counter(source(mixed, number) for _, number in rows)
        assert counts.total() == 55
        assert abs(counts["reviews"] - 55 * reviews) <= 1
        assert abs(counts["news"] - 55 * news) <= 1
    times = Counter(row for rows in orders for _, row in rows)
    for name in ("wiki", "reviews", "news"):
        own = [times[number] for number in range(55) if source(mixed, number) == name]
        assert max(own) - min(own) <= 1
    pairs = [pair for rows in orders for pair in rows]
    assert len(set(pairs)) == len(pairs)  # a row that comes again has another mask
    assert order(mixed, {"reviews": reviews, "news": news}, epochs) == orders


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"blogs": 0.1}, "no source blogs in the shards, only wiki, reviews, news"),
        ({"reviews": 0.8, "news": 0.5}, "add up to 1.3"),
        ({"reviews": 0.2, "news": 0.2, "wiki": 0.2}, "add up to 0.6"),
    ],
)
def test_impossible_shares_are_refused(mixed, shares, message):
    with pytest.raises(SettingsError, match=message):
        Mixture(mixed, mixed.edges[:-1], shares, 7)


@pytest.mark.parametrize("fill", [False, True])
def test_rows_of_pretraining_follow_the_shares(corpus, fill):
    rows = rows_of(corpus.files, fill=fill, shares={"reviews": 0.75})
    numbers = rows._mixture.rows(0, np.arange(400))[1].tolist()
    firsts = numbers if not fill else [int(rows._first[number]) for number in numbers]
    assert 0.67 < np.mean([rows.source(first) == "reviews" for first in firsts]) < 0.83
    one, two = (rows.batch(step, 16)[0]["input_ids"].tolist() for step in (0, 1))
    assert one != two


@settings(deadline=None)
@given(size=st.integers(1, 3000), key=st.integers(0, 2**64 - 1))
def test_a_permutation_reaches_every_position_once(size, key):
    assert np.array_equal(np.sort(permute(np.arange(size), size, key)), np.arange(size))


@settings(deadline=None)
@given(size=st.integers(1, 10**12), key=st.integers(0, 2**64 - 1), place=st.floats(0, 1, exclude_max=True))
def test_a_position_is_permuted_alone_as_among_others(size, key, place):
    position = int(place * size)
    alone = permute(np.array([position]), size, key)
    among = permute(np.array([0, position, size - 1]), size, key)
    assert 0 <= alone[0] < size
    assert alone[0] == among[1]


def test_permutations_of_two_keys_share_no_order():
    size = 10_000
    first, second = (permute(np.arange(size), size, derived_seed("test", seed)) for seed in (0, 1))
    for walked in (first, second):
        assert abs(np.corrcoef(np.arange(size), walked)[0, 1]) < 0.04
        assert (np.abs(np.diff(walked)) == 1).mean() < 0.001
    assert (first == second).mean() < 0.001
