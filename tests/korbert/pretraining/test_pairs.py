from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from korbert.pretraining import PairSettings, Shards
from korbert.pretraining.draws import Draws
from korbert.pretraining.objectives.pairs import IN_ORDER, NO_LABEL, NOT_NEXT, SWAPPED, Pairs, cut_into_examples
from tests.korbert.pretraining.conftest import rows_of, write_shards


class Pair(NamedTuple):
    first: tuple[int, int]
    second: tuple[int, int] | None
    label: int


def draw_all(pairs, epochs=1):
    made = []
    for epoch in range(epochs):
        numbers = np.arange(len(pairs))
        drawn = pairs.draw(numbers, Draws.of(0, np.full_like(numbers, epoch), numbers))
        ends = (drawn.starts + drawn.lengths).tolist()
        for (a, b), (a_end, b_end), label in zip(drawn.starts.tolist(), ends, drawn.labels.tolist(), strict=True):
            made.append(Pair((a, a_end), (b, b_end) if b < b_end else None, label))
    return made


def ends_of(pairs, number):
    start = int(pairs.starts[number])
    return start, start + int(pairs.lengths[number])


def size(span):
    return span[1] - span[0]


@pytest.mark.parametrize(
    ("sentences", "examples"),
    [
        ([4, 4, 4], [(0, 8), (8, 12)]),  # as many whole sentences as fit
        ([10], [(0, 10)]),
        ([23], [(0, 10), (10, 20), (20, 23)]),  # a long sentence is cut
        ([3, 12, 2], [(0, 3), (3, 13), (13, 17)]),  # and its rest goes with what follows
        ([11, 9], [(0, 10), (10, 20)]),
    ],
)
def test_examples_by_hand(shards, sentences, examples):
    starts, ends = cut_into_examples(Shards(shards([("wiki", sentences)], files=1).files), room=10)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == examples


@settings(max_examples=30, deadline=None)
@given(
    documents=st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=8), min_size=1, max_size=8),
    room=st.integers(2, 20),
)
def test_examples_cover_every_piece_once_and_keep_documents_apart(tmp_path_factory, documents, room):
    line = Shards(write_shards(tmp_path_factory.mktemp("cut"), [("wiki", lengths) for lengths in documents]).files)
    starts, ends = cut_into_examples(line, room)
    assert starts[0] == 0
    assert ends[-1] == line.edges[-1]
    assert np.array_equal(starts[1:], ends[:-1])
    assert (ends - starts).max() <= room
    assert np.isin(line.edges[:-1], starts).all()


def test_labels_say_where_b_comes_from(corpus):
    line = Shards(corpus.files)
    pairs = draw_all(Pairs(line, 61, PairSettings()))
    document = [line.document(np.array([pair.first[0], (pair.second or pair.first)[0]])).tolist() for pair in pairs]
    for pair, (first, second) in zip(pairs, document, strict=True):
        if pair.label == 1:  # as in Google's code: not the next one
            assert first != second
            assert line.sources[first] == line.sources[second]
            assert {pair.second[0], pair.second[1]} <= set(line.sentences.tolist())  # whole sentences
            assert pair.second[0] not in line.edges  # like a real B it never opens its document
        elif pair.second is not None:
            assert pair.second[0] == pair.first[1]
    assert {pair.label for pair in pairs} == {0, 1, -100}


def test_rows_without_a_second_segment_or_a_label(shards):
    """Documents of one sentence; and where no foreign B has the length."""
    single = Pairs(Shards(shards([("reviews", [5])] * 10).files), 61, PairSettings())
    assert all(pair.second is None and pair.label == NO_LABEL for pair in draw_all(single))
    documents = [("wiki", [4, 5]), ("wiki", [4, 6]), ("wiki", [4, 7])]
    pairs = draw_all(Pairs(Shards(shards(documents).files), 61, PairSettings()))
    assert [(pair.second, pair.label) for pair in pairs] == [((4, 9), -100), ((13, 19), -100), ((23, 30), -100)]


def test_no_pairs_of_a_source_without_documents(corpus):
    line = Shards(corpus.files)
    settings = (PairSettings(without=names) for names in ((), ("reviews", "not there")))
    usual, without = (draw_all(Pairs(line, 61, each)) for each in settings)
    sources = line.sources[line.document(np.array([pair.first[0] for pair in usual]))]
    reviews = sources == line.source_names.index("reviews")
    assert all(one == other for one, other, own in zip(without, usual, reviews, strict=True) if not own)
    paired, singles = ([pair for pair, own in zip(side, reviews, strict=True) if own] for side in (usual, without))
    assert len(singles) >= 1_200
    assert all(pair.second is None and pair.label == NO_LABEL for pair in singles)
    pieces = sum(size(pair.first) + (size(pair.second) if pair.second else 0) for pair in paired)
    assert sum(size(pair.first) for pair in singles) == pieces


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_labels_have_the_share_of_random_pairs(corpus, share):
    pairs = draw_all(Pairs(Shards(corpus.files), 61, PairSettings(share_random=share)), epochs=3)
    labels = np.array([pair.label for pair in pairs if pair.label != NO_LABEL])
    assert len(labels) > 8000
    assert (labels == NOT_NEXT).mean() == pytest.approx(share, abs=0.02)


def test_lengths_and_source_do_not_tell_the_label(corpus):
    line = Shards(corpus.files)
    pairs = [pair for pair in draw_all(Pairs(line, 61, PairSettings()), epochs=3) if pair.label != NO_LABEL]
    sources = line.sources[line.document(np.array([pair.first[0] for pair in pairs]))]
    lengths = np.array([(size(pair.first), size(pair.second)) for pair in pairs])
    total = lengths.sum(axis=1)
    features = np.column_stack([sources, lengths, total, lengths**2, total**2, lengths[:, 0] * lengths[:, 1]])
    labels = np.array([pair.label for pair in pairs])
    half = len(labels) // 2
    scaled = StandardScaler().fit_transform(features)
    guesses = LogisticRegression(max_iter=1000).fit(scaled[:half], labels[:half]).predict(scaled[half:])
    assert (guesses == labels[half:]).mean() < 0.55
    for source in np.unique(sources):
        assert (labels[sources == source] == NOT_NEXT).mean() == pytest.approx(0.5, abs=0.05)


def test_half_of_the_pairs_of_sop_are_swapped(corpus):
    ordered, swapped = (rows_of(corpus.files, objectives=("mlm", name)) for name in ("nsp", "sop"))
    labels = []
    for number in range(400):
        row = swapped.example(0, number)
        labels.append(row["pair_label"][0])
        original = row["input_ids"].copy()
        original[row["label_places"]] = row["labels"]
        first, second = (original[1:][row["token_type_ids"][1:] == segment][:-1] for segment in (0, 1))
        text, levels = ordered._shards.pieces(*ends_of(ordered._pairs, number))
        if labels[-1] == NO_LABEL:
            assert original[1:-1].tolist() == text.tolist()
            continue
        together = [second, first] if labels[-1] == SWAPPED else [first, second]
        assert np.concatenate(together).tolist() == text.tolist()
        assert levels[len(together[0])] == 3  # cut between two sentences
    pairs = [label for label in labels if label != NO_LABEL]
    assert set(pairs) == {IN_ORDER, SWAPPED}
    assert 0.4 < np.mean(pairs) < 0.6
