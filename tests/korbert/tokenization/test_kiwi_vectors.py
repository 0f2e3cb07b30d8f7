from itertools import combinations

import numpy as np
import pytest

from korbert.tokenization import AnalyzerOptions
from korbert.tokenization.kiwi_vectors import morpheme_vectors, piece_vectors
from korbert.tokenization.morphemes import load_kiwi

MORPHEMES = [("사랑", "NNG"), ("애정", "NNG"), ("없는낱말", "NNG"), ("재미있", "VA"), ("는", "JX"), ("은", "JX")]
MORPHEMES += [("학교", "NNG")]


@pytest.fixture(scope="module")
def kiwi():
    return load_kiwi(AnalyzerOptions().model_dump(), 1)


def test_cosines_are_those_of_kiwi(kiwi):
    known, vectors = morpheme_vectors(kiwi, MORPHEMES)
    assert known.tolist() == [0, 1, 3, 4, 5, 6]
    assert vectors.shape == (6, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(6), abs=1e-3)
    for one, other in combinations(range(6), 2):
        pair = MORPHEMES[known[one]], MORPHEMES[known[other]]
        if pair != (("는", "JX"), ("은", "JX")):  # allomorphs, one entry
            assert vectors[one] @ vectors[other] == pytest.approx(kiwi.morpheme_similarity(*pair), abs=1e-4), pair
    assert vectors[3] == pytest.approx(vectors[4], abs=1e-5)


def vector_of(tokenizer, counts, form):
    ids, vectors = piece_vectors(tokenizer, counts)
    (id,) = tokenizer.encode_forms([form], [True])[0]
    return np.asarray(vectors[ids.tolist().index(id)])


@pytest.mark.slow
def test_a_piece_has_the_mean_of_its_morphemes_by_count(tiny_tokenizer, kiwi):
    counts = [("이", "JKS", 30), ("이", "VCP", 10), ("다", "EF", 5), ("을", "JKO", 1), ("학교생활기록부", "NNG", 7)]
    assert len(tiny_tokenizer.encode_forms(["학교생활기록부"], [True])[0]) > 1
    ids, vectors = piece_vectors(tiny_tokenizer, counts)
    assert sorted(tiny_tokenizer.tokens(ids.tolist())) == ["다", "을", "이"]
    assert np.isfinite(vectors).all()

    _, own = morpheme_vectors(kiwi, [(form, tag) for form, tag, _ in counts[:4]])
    centred = own - own.mean(axis=0)
    mixed = 0.75 * centred[0] + 0.25 * centred[1]
    assert vector_of(tiny_tokenizer, counts, "이") @ vector_of(tiny_tokenizer, counts, "다") == pytest.approx(
        mixed @ centred[2], abs=1e-3
    )
