import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.pretraining.permutation import permuted
from korbert.seeds import derived_seed


@settings(deadline=None)
@given(size=st.integers(1, 3000), key=st.integers(0, 2**64 - 1))
def test_every_place_is_reached_once(size, key):
    assert np.array_equal(np.sort(permuted(np.arange(size), size, key)), np.arange(size))


@settings(deadline=None)
@given(size=st.integers(1, 10**12), key=st.integers(0, 2**64 - 1), place=st.floats(0, 1, exclude_max=True))
def test_a_place_goes_to_the_same_one_alone_and_among_others(size, key, place):
    position = int(place * size)
    alone = permuted(np.array([position]), size, key)
    among = permuted(np.array([0, position, size - 1]), size, key)
    assert 0 <= alone[0] < size
    assert alone[0] == among[1]


def test_keys_give_unlike_permutations_that_keep_no_order():
    size = 10_000
    first, second = (permuted(np.arange(size), size, derived_seed("test", seed)) for seed in (0, 1))
    for walked in (first, second):
        assert abs(np.corrcoef(np.arange(size), walked)[0, 1]) < 0.04
        assert (np.abs(np.diff(walked)) == 1).mean() < 0.001
    assert (first == second).mean() < 0.001
