"""Hashes of stretches of text, and which of them recur, against plain loops."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpus.cleaning.hashing import hashes_of, is_in, repeated, repeats

KEYS = st.lists(st.integers(0, 9), max_size=30).map(lambda keys: np.array(keys, np.uint64))


def test_equal_words_alone_have_equal_hashes():
    words = [f"낱말{number}" for number in range(20_000)] + ["가" * length for length in range(1, 200)]
    codes = np.frombuffer(" ".join(words + words).encode("utf-32-le"), "<u4")
    ends = np.append(np.flatnonzero(codes == 32), len(codes))
    starts = np.append(0, ends[:-1] + 1)
    hashes = hashes_of(codes, starts, ends)
    assert (hashes[: len(words)] == hashes[len(words) :]).all()
    assert len(np.unique(hashes)) == len(words)


@given(KEYS, KEYS)
def test_is_in_equals_a_plain_search(keys, held):
    assert is_in(keys, np.unique(held)).tolist() == [key in held for key in keys]


@given(KEYS)
def test_repeated_equals_a_plain_count(keys):
    counts = Counter(keys.tolist())
    assert repeated(keys).tolist() == [counts[key] > 1 for key in keys.tolist()]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=30))
def test_repeats_are_within_one_text(pairs):
    keys, texts = np.array([key for key, _ in pairs], np.uint64), np.array([text for _, text in pairs], np.int64)
    assert repeats(keys, texts).tolist() == [pair in pairs[:place] for place, pair in enumerate(pairs)]
