from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.tasks.token_classification.bio import read_bio, write_bio
from korbert.tasks.token_classification.viterbi import Transitions, best_path

LABEL_SETS = [
    ["O", "B-PS", "I-PS"],
    ["I-PS", "O", "B-LC", "B-PS", "I-LC"],
    ["O", "I-PS", "I-LC"],  # IOB1
    ["NOUN", "VERB", "B-X"],  # no BIO tags
]


def is_legal(tags, labels):
    """A legal sequence is what is written for its spans."""
    if "NOUN" in labels or not any(label.startswith("B-") for label in labels):
        return True
    return write_bio(read_bio(tags), len(tags)) == tags


@given(labels=st.sampled_from(LABEL_SETS), length=st.integers(0, 5), seed=st.integers(0, 10_000))
def test_the_best_legal_path_is_that_of_trying_all(labels, length, seed):
    scores = np.log(np.random.default_rng(seed).dirichlet(np.ones(len(labels)), size=length))
    path = best_path(scores, Transitions(labels))
    assert path.shape == (length,)
    assert is_legal([labels[place] for place in path], labels)
    legal = [
        sum(scores[place, label] for place, label in enumerate(way))
        for way in product(range(len(labels)), repeat=length)
        if is_legal([labels[label] for label in way], labels)
    ]
    assert sum(scores[np.arange(length), path]) == pytest.approx(max(legal))


def test_impossible_labels():
    """A probability of 0 is no obstacle, and gives no NaN."""
    scores = np.array([[-np.inf, -1.0, 0.0], [-np.inf, -np.inf, 0.0]])
    assert best_path(scores, Transitions(["O", "B-PS", "I-PS"])).tolist() == [1, 2]
