from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import SettingsError
from korbert.tasks.token_classification.examples import IGNORED, by_text, cut_windows, encode_tags, make_examples
from korbert.tokenization.encoding import Frame
from tests.korbert.tasks.answering import letters

TOKENIZER = SimpleNamespace(pad_id=0, frame=Frame(2, 3))


@given(count=st.integers(0, 60), room=st.integers(1, 20), data=st.data())
def test_each_piece_is_labelled_where_it_has_most_context(count, room, data):
    stride = data.draw(st.integers(0, room - 1))
    windows = cut_windows(count, max_length=room + 2, stride=stride)
    assert (windows[0].first, windows[-1].last) == (0, count)
    assert [at for window in windows for at in range(window.low, window.high)] == list(range(count))
    assert all(0 <= window.last - window.first <= room for window in windows)
    assert all(before.last - after.first == stride for before, after in pairwise(windows))

    def context(window, at):
        """Pieces on the side with fewer of them; where the text ends nothing is missing."""
        left = np.inf if window.first == 0 else at - window.first
        right = np.inf if window.last == count else window.last - 1 - at
        return min(left, right) if window.first <= at < window.last else -1

    for number, window in enumerate(windows):
        for at in range(window.low, window.high):
            contexts = [context(other, at) for other in windows]
            assert number == contexts.index(max(contexts))  # the earliest of equals


@pytest.mark.parametrize(("max_length", "stride"), [(8, 6), (2, 0), (8, -1)])
def test_a_stride_that_leaves_nothing_new_is_refused(max_length, stride):
    said = rf"stride {stride} is not below the window of {max_length - 2} pieces .*: lower stride or raise max_length"
    with pytest.raises(SettingsError, match=said):
        cut_windows(20, max_length=max_length, stride=stride)


def _texts(*counts):
    return [letters("가" * count) for count in counts]


def test_rows_by_hand():
    texts = _texts(5, 0, 2)
    targets = [np.array([4, 5, 6, IGNORED, 8]), np.array([], dtype=np.int64), np.array([1, 0])]
    examples = make_examples(texts, targets, TOKENIZER, max_length=6, stride=2)
    assert [tuple(window) for window in examples.windows] == [
        (0, 0, 4, 0, 3),
        (0, 2, 5, 3, 5),
        (1, 0, 0, 0, 0),
        (2, 0, 2, 0, 2),
    ]
    assert len(examples) == 4
    batch = examples.batch(np.arange(4))
    rows = [[2, 100, 101, 102, 103, 3], [2, 102, 103, 104, 3, 0], [2, 3, 0, 0, 0, 0], [2, 100, 101, 3, 0, 0]]
    assert batch["input_ids"].tolist() == rows
    no = IGNORED
    labels = [[no, 4, 5, 6, no, no], [no, no, no, 8, no, no], [no] * 6, [no, 1, 0, no, no, no]]
    assert batch["labels"].tolist() == labels  # each piece in one row
    assert batch["attention_mask"].sum(dim=1).tolist() == list(batch["lengths"]) == [6, 5, 2, 4]
    assert batch["boundaries"][0].tolist() == [0, 1, 1, 1, 1, 0]
    assert batch["targets_per_row"].item() == pytest.approx(6 / 4)


@given(counts=st.lists(st.integers(0, 30), max_size=5), room=st.integers(1, 9), data=st.data())
def test_scores_come_back_to_their_pieces(counts, room, data):
    texts = _texts(*counts)
    stride = data.draw(st.integers(0, room - 1))
    targets = [np.full(count, IGNORED) for count in counts]
    examples = make_examples(texts, targets, TOKENIZER, max_length=room + 2, stride=stride)
    ids = examples.batch(np.arange(len(examples)))["input_ids"].numpy() if counts else np.zeros((0, 0))
    found = list(by_text(np.stack([ids, -ids], axis=2).astype(np.float32), examples.windows))
    assert [own.tolist() for own in found] == [[[id, -id] for id in text.ids.tolist()] for text in texts]
    # Tags become numbers.
    assert encode_tags(["I-PS", None, "O"], ["O", "B-PS", "I-PS"]).tolist() == [2, IGNORED, 0]
    assert encode_tags([], ["O"]).dtype == np.int64
