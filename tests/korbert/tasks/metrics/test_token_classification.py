"""Entities and their scores agree with seqeval, legal tags or not; characters with scikit-learn, used as in KLUE."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.metrics.sequence_labeling import get_entities
from sklearn.metrics import f1_score

from korbert.tasks.metrics.token_classification import entity_f1, span_counts, tag_f1
from korbert.tasks.token_classification.bio import read_bio, write_bio

BIO = ["O", "B-PS", "I-PS", "B-LC", "I-LC"]


PAIRS = st.lists(st.lists(st.tuples(*[st.sampled_from(BIO)] * 2), min_size=1, max_size=8), min_size=1, max_size=4)


def _sides(pairs):
    return [[pair[0] for pair in row] for row in pairs], [[pair[1] for pair in row] for row in pairs]


def _counts(gold, predicted):
    return span_counts(list(map(read_bio, gold)), list(map(read_bio, predicted)), ["LC", "PS"])


def _f1(gold, predicted, of=entity_f1):
    return of(_counts(gold, predicted).sum(axis=0))


@given(tags=st.lists(st.sampled_from(BIO), max_size=12))
def test_entities_are_those_of_seqeval(tags):
    spans = read_bio(tags)
    assert spans == [(start, last + 1, kind) for kind, start, last in get_entities(tags)]
    assert read_bio(write_bio(spans, len(tags))) == spans


@given(pairs=PAIRS)
def test_scores_are_those_of_seqeval_and_counts_add_up(pairs):
    gold, predicted = _sides(pairs)
    assert _f1(gold, predicted) == pytest.approx(seqeval_f1(gold, predicted, zero_division=0))
    if _counts(gold, predicted).any():
        expected = seqeval_f1(gold, predicted, average="macro", zero_division=0)
        assert _f1(gold, predicted, tag_f1) == pytest.approx(expected)
    else:
        assert _f1(gold, predicted, tag_f1) is None
    counts = _counts(gold, predicted)
    assert counts.shape == (len(gold), 2, 3)
    assert (counts[..., 0] <= counts[..., 1:].min(axis=-1)).all()
    assert entity_f1(counts[1:].sum(axis=0)) == _f1(gold[1:], predicted[1:])


@given(pairs=PAIRS)
def test_tag_f1_is_that_of_scikit_learn(pairs):
    """KLUE's script scores all tags, `O` too; its paper the same without `O`."""
    gold, predicted = ([tag for row in side for tag in row] for side in _sides(pairs))
    both = [a for a, b in zip(gold, predicted, strict=True) if a == b]
    counts = np.array([[side.count(tag) for side in (both, predicted, gold)] for tag in BIO])
    for without, tags in ((None, {*gold, *predicted}), (0, {*gold, *predicted} - {"O"})):
        how = {"labels": sorted(tags), "average": "macro", "zero_division": 0}
        expected = pytest.approx(f1_score(gold, predicted, **how)) if tags else None
        assert tag_f1(counts, without) == expected
