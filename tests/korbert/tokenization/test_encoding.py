from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import SettingsError
from korbert.tokenization import Encoding, Pieces, pad_batch, span_to_pieces
from korbert.tokenization.encoding import Frame, assemble, windows

FRAME = Frame(cls_id=2, sep_id=3)


def made(count, first_id=400):
    """Pieces of one character each."""
    places = list(range(count))
    ids, pieces = [first_id + place for place in places], [chr(0xAC00 + place) for place in places]
    return Pieces(ids, pieces, [2] * count, [(place, place + 1) for place in places], places, ["NNG"] * count)


def test_texts_stand_between_special_tokens():
    encoding = assemble(made(1), made(2, 500), FRAME)
    assert encoding.input_ids == [2, 400, 3, 500, 501, 3]
    assert encoding.pieces == ["[CLS]", "가", "[SEP]", "가", "각", "[SEP]"]
    assert encoding.token_type_ids == [0, 0, 0, 1, 1, 1]
    assert encoding.attention_mask == [1] * 6
    assert encoding.special_tokens_mask == [1, 0, 1, 0, 0, 1]
    assert encoding.spans == [(0, 0), (0, 1), (0, 0), (0, 1), (1, 2), (0, 0)]
    assert encoding.boundaries == [0, 2, 0, 2, 2, 0]
    assert encoding.morphemes == [-1, 0, -1, 0, 1, -1]
    assert encoding.tags == ["", "NNG", "", "NNG", "NNG", ""]
    assert assemble(made(2), None, FRAME).input_ids == [2, 400, 401, 3]


@given(first=st.integers(0, 12), second=st.none() | st.integers(0, 12), room=st.integers(0, 20))
def test_the_longest_is_cut_first(first, second, room):
    left, right = first, second or 0
    while left + right > room:  # one by one, from the longer; from the second where they are equal
        left, right = (left - 1, right) if left > right or second is None else (left, right - 1)
    special = 2 if second is None else 3
    encoding = assemble(made(first), None if second is None else made(second, 500), FRAME, max_length=room + special)
    kinds = [
        kind for kind, special in zip(encoding.token_type_ids, encoding.special_tokens_mask, strict=True) if not special
    ]
    assert (kinds.count(0), kinds.count(1)) == (left, right)
    assert {len(getattr(encoding, name)) for name in Encoding.__slots__} == {left + right + special}


@given(length=st.integers(0, 30), question=st.none() | st.integers(0, 5), room=st.integers(1, 12), data=st.data())
def test_windows_show_everything_and_overlap_by_the_stride(length, question, room, data):
    stride = data.draw(st.integers(0, room - 1))
    first = made(length) if question is None else made(question, 900)
    second = None if question is None else made(length)
    max_length = room + (2 if question is None else question + 3)
    found = windows(first, second, FRAME, max_length, stride)
    segment = 0 if question is None else 1
    shown = [
        [id for id, kind, special in zip(one.input_ids, one.token_type_ids, one.special_tokens_mask, strict=True)
         if kind == segment and not special]
        for one in found
    ]  # fmt: skip
    assert all(len(one) <= max_length for one in found)
    assert shown[0] + [id for part in shown[1:] for id in part[stride:]] == made(length).ids
    assert all(before[len(before) - stride :] == after[:stride] for before, after in pairwise(shown))
    assert all(len(part) > stride for part in shown[1:])  # each shows something new


@pytest.mark.parametrize(
    ("first", "second", "max_length", "stride", "message"),
    [
        (3, None, 1, None, "max_length 1 is below the 2 special tokens"),
        (3, 3, 2, None, "max_length 2 is below the 3 special tokens"),
        (3, None, 1, 0, "max_length 1 is below the 2 special tokens"),
        (3, None, 2, 0, "leaves no room"),
        (9, 5, 12, 0, "leaves no room for the second segment: the first takes 9 pieces"),
        (3, None, 6, 4, "stride 4 is not below the window of 4 pieces"),
        (2, 9, 9, 4, "stride 4 is not below the window of 4 pieces"),
        (3, None, 6, -1, "stride -1 is not"),
    ],
)
def test_impossible_lengths_are_refused(first, second, max_length, stride, message):
    pair = None if second is None else made(second)
    lengths = (max_length,) if stride is None else (max_length, stride)
    encode = assemble if stride is None else windows
    with pytest.raises(SettingsError, match=message):
        encode(made(first), pair, FRAME, *lengths)


def test_a_batch_is_padded_to_its_longest():
    batch = pad_batch([assemble(made(1), None, FRAME), assemble(made(1), made(1), FRAME)], pad_id=0)
    assert {name: array.dtype for name, array in batch.items()} == dict.fromkeys(batch, np.dtype(np.int64))
    assert batch["input_ids"].tolist() == [[2, 400, 3, 0, 0], [2, 400, 3, 400, 3]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]]
    assert batch["boundaries"].tolist() == [[0, 2, 0, 0, 0], [0, 2, 0, 2, 0]]
    assert batch["special_tokens_mask"].tolist() == [[1, 0, 1, 1, 1], [1, 0, 1, 0, 1]]
    assert pad_batch([], pad_id=0)["input_ids"].shape == (0, 0)


THIS = [(0, 0), (0, 2), (1, 2), (3, 5), (5, 5), (5, 6), (5, 6), (0, 0)]  # 이거 ᆯ, 학교, 이 (empty), two bytes


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 2, (1, 1)), (1, 2, (1, 1)),  # of fused morphemes the one that covers all
        (3, 5, (3, 3)), (4, 5, (3, 3)), (3, 6, (3, 5)), (0, 6, (1, 5)),
        (2, 3, None), (9, 12, None),  # a space, and what is not there
    ],
)  # fmt: skip
def test_a_span_is_covered_by_the_fewest_pieces(start, end, expected):
    assert span_to_pieces(THIS, start, end) == expected
