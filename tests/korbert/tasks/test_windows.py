from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from korbert.tasks.question_answering.window_settings import WindowSettings
from korbert.tasks.question_answering.windows import WindowExamples, cut_windows, reading_loss
from tests.korbert.tasks.answering import TOKENIZER, Scripted, collate, letters, small_network

SMALL = WindowSettings(max_length=16, stride=3, max_query_pieces=4)


@given(context=st.integers(0, 80), question=st.integers(0, 9), stride=st.integers(0, 8), length=st.integers(17, 40))
def test_windows_cover_the_context_and_share_the_stride(context, question, stride, length):
    settings = WindowSettings(max_length=length, stride=stride, max_query_pieces=4)
    windows = cut_windows(letters("가" * question), letters("나" * context), settings, special=3)
    room = length - 3 - min(question, 4)
    assert (windows[0].first, windows[-1].last) == (0, context)
    assert all(0 <= window.last - window.first <= room for window in windows)
    for before, after in pairwise(windows):
        assert (before.last - after.first, before.last - before.first) == (stride, room)
        assert after.last > before.last


@given(data=st.data(), length=st.integers(1, 60))
def test_gold_stands_in_every_window_that_holds_the_answer_and_in_no_other(data, length):
    start = data.draw(st.integers(0, length - 1))
    end = data.draw(st.integers(start + 1, length))
    context = letters("가" * length)
    windows = cut_windows(letters("나나나"), context, SMALL, answer=(start, end), special=3)
    for window in windows:
        holds = window.first <= start and end <= window.last
        assert (window.gold == (start, end - 1)) if holds else (window.gold is None)
    batch = collate(windows, TOKENIZER, SMALL)
    for row, window in enumerate(windows):
        first, last = batch["start_positions"][row], batch["end_positions"][row]
        if window.gold:
            assert batch["input_ids"][row, first : last + 1].tolist() == context.ids[start:end].tolist()
        else:
            assert (first, last) == (0, 0)


def test_collate_by_hand():
    settings = WindowSettings(max_length=12, stride=2, max_query_pieces=3)
    question, context = letters("언제였나", 50), letters("가나 다라 마바 사", 100)
    windows = cut_windows(question, context, settings, answer=(6, 8), special=3)
    batch = collate(windows, TOKENIZER, settings)
    asked = [2, 50, 51, 52, 3]
    assert batch["input_ids"].tolist() == [[*asked, *range(100, 106), 3], [*asked, 104, 105, 106, 3, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1] * 12, [1] * 9 + [0] * 3]
    assert batch["token_type_ids"].tolist() == [[0] * 5 + [1] * 7, [0] * 5 + [1] * 4 + [0] * 3]
    assert batch["boundaries"].tolist() == [[0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0]]
    assert batch["choices"].int().tolist() == [[1, *[0] * 4, *[1] * 6, 0], [1, *[0] * 4, *[1] * 3, *[0] * 4]]
    assert batch["lengths"] == tuple(WindowExamples.of(windows, TOKENIZER, settings).lengths) == (12, 9)
    assert (batch["start_positions"].tolist(), batch["end_positions"].tolist()) == ([9, 5], [10, 6])


@torch.no_grad()
@pytest.mark.parametrize("architecture", ["modern", "bert"])
def test_loss_is_unchanged_by_padding(architecture):
    model = small_network(architecture)
    long = cut_windows(letters("언제"), letters("가나다라마바사아"), SMALL, answer=(2, 4), special=3)
    short = cut_windows(letters("누가"), letters("바사아"), SMALL, answer=(0, 1), special=3)
    apart = [reading_loss(model, collate(part, TOKENIZER, SMALL))["loss"] for part in (long, short)]
    together = reading_loss(model, collate([*long, *short], TOKENIZER, SMALL))
    assert together["loss"].item() == pytest.approx(float(sum(apart)) / 2, abs=1e-5)
    assert together["loss"].item() == pytest.approx((together["start_loss"] + together["end_loss"]).item() / 2)


def test_loss_of_a_model_that_knows_nothing_is_that_of_guessing_among_the_choices():
    windows = cut_windows(letters("언제"), letters("가나다라마"), SMALL, answer=(2, 4), special=3)
    loss = reading_loss(Scripted({}, {}), collate(windows, TOKENIZER, SMALL))["loss"]
    assert loss.item() == pytest.approx(np.log(6))  # five pieces and [CLS]


def test_settings_that_cannot_work():
    with pytest.raises(ValidationError, match=r"leaves 60 pieces of context .* needs more than stride 64: raise"):
        WindowSettings(max_length=128, stride=64)
