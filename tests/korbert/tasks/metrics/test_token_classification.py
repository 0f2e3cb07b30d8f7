"""Entities and their scores agree with seqeval, legal tags or not; characters with scikit-learn, used as in KLUE."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.metrics.sequence_labeling import get_entities
from sklearn.metrics import f1_score

from korbert.tasks.metrics.token_classification import entity_counts, f1_from_counts, tag_f1
from korbert.tasks.token_classification.bio import read_bio

BIO = ["O", "B-PS", "I-PS", "B-LC", "I-LC"]


def _pairs_of(tags):
    pair = st.tuples(st.sampled_from(tags), st.sampled_from(tags))
    return st.lists(st.lists(pair, min_size=1, max_size=8), min_size=1, max_size=4)


def _sides(pairs):
    return [[pair[0] for pair in row] for row in pairs], [[pair[1] for pair in row] for row in pairs]


def _f1(gold, predicted, average="micro"):
    return f1_from_counts(entity_counts(gold, predicted)[1].sum(axis=0), average)


@given(tags=st.lists(st.sampled_from(BIO), max_size=12))
def test_entities_are_those_of_seqeval(tags):
    assert read_bio(tags) == [(start, last + 1, kind) for kind, start, last in get_entities(tags)]


@given(pairs=_pairs_of(BIO))
def test_scores_are_those_of_seqeval(pairs):
    gold, predicted = _sides(pairs)
    assert _f1(gold, predicted) == pytest.approx(seqeval_f1(gold, predicted, zero_division=0))
    if entity_counts(gold, predicted)[0]:
        expected = seqeval_f1(gold, predicted, average="macro", zero_division=0)
        assert _f1(gold, predicted, "macro") == pytest.approx(expected)
    else:
        assert _f1(gold, predicted, "macro") is None


@given(pairs=_pairs_of(BIO))
def test_counts_add_up(pairs):
    gold, predicted = _sides(pairs)
    types, counts = entity_counts(gold, predicted)
    assert counts.shape == (len(gold), len(types), 3)
    assert (counts[..., 0] <= counts[..., 1:].min(axis=-1)).all()
    assert f1_from_counts(counts[1:].sum(axis=0)) == _f1(gold[1:], predicted[1:])


@given(pairs=_pairs_of(BIO))
def test_tag_f1_is_that_of_scikit_learn(pairs):
    """KLUE's script scores all tags, `O` too; its paper the same without `O`."""
    gold, predicted = ([tag for row in side for tag in row] for side in _sides(pairs))
    counts = np.array(
        [[sum(a == b == tag for a, b in zip(gold, predicted, strict=True)), predicted.count(tag), gold.count(tag)]
         for tag in BIO]
    )  # fmt: skip
    for without, tags in ((None, {*gold, *predicted}), (0, {*gold, *predicted} - {"O"})):
        if not tags:
            assert tag_f1(counts, without) is None
            continue
        expected = f1_score(gold, predicted, labels=sorted(tags), average="macro", zero_division=0)
        assert tag_f1(counts, without) == pytest.approx(expected)
