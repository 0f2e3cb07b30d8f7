import random

import numpy as np
import planted
import pytest

from korbert.corpus.cleaning.features import Features
from korbert.corpus.cleaning.minhash import BANDS, SIGNATURE_BYTES, similarity
from korbert.corpus.cleaning.minhash import signatures as of_features


def signatures(texts, min_terms):
    return of_features(Features(texts), min_terms)


@pytest.fixture(scope="module")
def compared():
    """Similarities of the sets of pairs of texts, and the signatures of both sides."""
    first, second = zip(*planted.pairs(1, 600), strict=True)
    exact = np.array([planted.jaccard(*pair) for pair in zip(first, second, strict=True)])
    return exact, signatures(first, 3), signatures(second, 3)


def test_similarity_estimates_that_of_the_sets(compared):
    exact, first, second = compared
    error = similarity(first.bytes, second.bytes) - exact
    assert exact.min() < 0.35
    assert np.sqrt((error**2).mean()) < 0.045  # of 125 draws, sqrt(0.25 / 125) at the most
    assert abs(error.mean()) < 0.01


def test_bands_are_shared_with_the_expected_probability(compared):
    exact, first, second = compared
    shared = (first.bands == second.bands).any(axis=1)
    expected = 1 - (1 - exact**5) ** BANDS
    assert shared[exact >= 0.8].all()
    assert abs(shared.sum() - expected.sum()) < 4 * np.sqrt((expected * (1 - expected)).sum()) + 1


def test_punctuation_case_and_other_texts_do_not_change_a_signature():
    signed = signatures(["가나 다라 마바 Abc 사아.", "«가나», 다라! 마바 aBC 사아", "하나 둘 셋 넷 다섯 여섯"], 3)
    assert signed.texts.tolist() == [0, 1, 2]
    assert (signed.bytes[0] == signed.bytes[1]).all()
    assert (signed.bands[0] == signed.bands[1]).all()
    assert not (signed.bands[0] == signed.bands[2]).any()


@pytest.mark.parametrize("least", [3, 4])
def test_texts_of_few_terms_have_no_signature(least):
    assert signatures([], least).bands.shape == (0, BANDS)
    signed = signatures(["", "하나 둘", "하나 둘 셋", "가. 나. 다. 라.", "...!!!"], least)
    assert signed.texts.tolist() == ([2, 3] if least == 3 else [3])
    assert signed.bands.shape == (len(signed.texts), BANDS)
    assert signed.bytes.shape == (len(signed.texts), SIGNATURE_BYTES)


def test_minima_of_blocks_are_combined():
    generator = random.Random(2)
    words = [generator.choice(planted.WORDS) + str(number) for number in range(20_000)]  # more than are hashed at once
    moved = words[10_000:] + words[:10_000]
    signed = signatures([" ".join(words), "짧은 글 하나 여기", " ".join(moved)], 3)
    assert similarity(signed.bytes[:1], signed.bytes[2:])[0] > 0.98
