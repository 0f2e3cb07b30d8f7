from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from korbert.modeling import EncoderConfig, ReadingModel
from korbert.tasks.examples import Batches
from korbert.tasks.passages import Passage
from korbert.tasks.questions import Answer, Dataset, Question
from korbert.tasks.reading_settings import ReadingSettings
from korbert.tasks.windows import WindowExamples, collate, cut_windows, reading_loss, training_batches
from korbert.tokenization.encoding import Frame
from korbert.world import World

TOKENIZER = SimpleNamespace(pad_id=0, frame=Frame(2, 3))
SMALL = ReadingSettings(max_length=16, stride=3, max_query_pieces=4)


def letters(text, first_id=100):
    """A text whose pieces are its characters that are not space; ids count up from first_id."""
    places = [i for i, char in enumerate(text) if not char.isspace()]
    spans = np.array([(i, i + 1) for i in places], dtype=np.int32).reshape(-1, 2)
    ids = np.arange(first_id, first_id + len(places), dtype=np.int32)
    return Passage(text, ids, np.full(len(places), 1, dtype=np.uint8), spans)


@given(context=st.integers(0, 80), question=st.integers(0, 9), stride=st.integers(0, 8), length=st.integers(17, 40))
def test_windows_cover_the_context_and_share_the_stride(context, question, stride, length):
    settings = ReadingSettings(max_length=length, stride=stride, max_query_pieces=4)
    windows = cut_windows(letters("가" * question), letters("나" * context), settings, special=3)
    room = length - 3 - min(question, 4)
    assert windows[0].first == 0
    assert windows[-1].last == context
    assert all(0 <= window.last - window.first <= room for window in windows)
    for before, after in pairwise(windows):
        assert before.last - after.first == stride
        assert before.last - before.first == room
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
    settings = ReadingSettings(max_length=12, stride=2, max_query_pieces=3)
    windows = cut_windows(
        letters("언제였나", 50), letters("가나 다라 마바 사", 100), settings, answer=(6, 8), special=3
    )
    batch = collate(windows, TOKENIZER, settings)
    assert batch["input_ids"].tolist() == [
        [2, 50, 51, 52, 3, 100, 101, 102, 103, 104, 105, 3],
        [2, 50, 51, 52, 3, 104, 105, 106, 3, 0, 0, 0],
    ]
    assert batch["attention_mask"].tolist() == [[1] * 12, [1] * 9 + [0] * 3]
    assert batch["token_type_ids"].tolist() == [[0] * 5 + [1] * 7, [0] * 5 + [1] * 4 + [0] * 3]
    assert batch["boundaries"].tolist() == [
        [0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0],
        [0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0],
    ]
    assert batch["choices"].int().tolist() == [
        [1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0],
        [1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0],
    ]
    assert batch["lengths"] == tuple(batch["attention_mask"].sum(dim=1).tolist())
    assert batch["start_positions"].tolist() == [9, 5]
    assert batch["end_positions"].tolist() == [10, 6]


def window_examples():
    """Windows of three questions on a long and a short context; the second one has no answer."""
    contexts = ("가" * 30, "나 다 라")
    answers = ((Answer("가가", 4), Answer("가", 9)), (), (Answer("라", 4),))
    questions = tuple(Question(f"q{i}", "언" * (3 * i + 1), (0, 0, 1)[i], right) for i, right in enumerate(answers))
    pairs = [(letters(question.text, 50), letters(contexts[question.context])) for question in questions]
    dataset = Dataset(("", ""), contexts, questions)
    return WindowExamples.of_dataset(dataset, pairs, TOKENIZER, SMALL), pairs


def test_windows_of_a_dataset_are_those_of_its_questions():
    examples, pairs = window_examples()
    spans = ((4, 6), None, (4, 5))  # the first of several answers
    cut = [
        cut_windows(*pair, SMALL, index=index, answer=span, special=3)
        for index, (pair, span) in enumerate(zip(pairs, spans, strict=True))
    ]
    assert list(examples.windows) == [window for windows in cut for window in windows]
    assert [any(window.gold for window in windows) for windows in cut] == [True, False, True]
    assert len(cut[1]) > 1


def test_windows_are_examples():
    examples, _ = window_examples()
    assert len(examples) == len(examples.windows) > 5
    whole = examples.batch(np.arange(len(examples)))
    assert examples.lengths.dtype == np.int64
    assert examples.lengths.tolist() == list(whole["lengths"])
    assert whole.keys() == collate(examples.windows, TOKENIZER, SMALL).keys()
    order = list(examples.by_length(4))
    assert sorted(np.concatenate(order)) == list(range(len(examples)))
    assert [len(rows) for rows in order[:-1]] == [4] * (len(order) - 1)
    assert sorted(examples.lengths) == examples.lengths[np.concatenate(order)].tolist()


def test_batches_of_windows_are_learned():
    examples, _ = window_examples()
    batches = Batches(examples, batch_size=4, seed=0)
    seen = sum(len(batches(step)[0]["input_ids"]) for step in range(batches.steps_per_epoch))
    assert seen == len(examples)
    assert torch.isfinite(reading_loss(model_of(encoder()), batches(0)[0])["loss"])


def test_every_epoch_takes_each_window_once_in_its_own_order():
    windows = cut_windows(letters("나"), letters("가" * 100), SMALL, special=3)
    batches = training_batches(windows, TOKENIZER, SMALL, batch_size=len(windows), seed=3)
    firsts = [batches(step)[0]["input_ids"][:, 3].tolist() for step in (0, 1)]
    assert sorted(firsts[0]) == sorted(firsts[1]) == [100 + window.first for window in windows]
    assert firsts[0] != firsts[1]
    again = training_batches(windows, TOKENIZER, SMALL, batch_size=len(windows), seed=3)
    assert again(1)[0]["input_ids"][:, 3].tolist() == firsts[1]  # pure in the step
    other = training_batches(windows, TOKENIZER, SMALL, batch_size=len(windows), seed=4)
    assert other(0)[0]["input_ids"][:, 3].tolist() != firsts[0]


def test_processes_share_the_windows_of_a_step(monkeypatch):
    windows = cut_windows(letters("나"), letters("가" * 100), SMALL, special=3)
    options = {"batch_size": 7, "micro_batches": 4, "seed": 3}
    (whole,) = training_batches(windows, TOKENIZER, SMALL, batch_size=7, seed=3)(1)
    rows, weights = [], []
    for rank in range(3):
        monkeypatch.setattr("korbert.tasks.windows.connected", lambda rank=rank: World(rank, 3))
        for batch in training_batches(windows, TOKENIZER, SMALL, **options)(1):
            rows += batch["input_ids"][:, 3].tolist()
            weights.append(float(batch["weight"]))
    assert sorted(rows) == sorted(whole["input_ids"][:, 3].tolist())
    assert sum(weights) == pytest.approx(1)


def test_a_step_may_reach_into_the_next_epoch():
    windows = cut_windows(letters("나"), letters("가" * 30), SMALL, special=3)
    batches = training_batches(windows, TOKENIZER, SMALL, batch_size=2 * len(windows) + 1, seed=0)
    assert sum(len(batch["input_ids"]) for batch in batches(0)) == 2 * len(windows) + 1


def encoder(**changes):
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    return EncoderConfig(**{"vocab_size": 512, **sizes, **changes})


def model_of(config):
    return ReadingModel(config, torch.Generator().manual_seed(0)).eval()


@torch.no_grad()
@pytest.mark.parametrize("architecture", ["modern", "bert"])
def test_loss_is_unchanged_by_padding_and_by_micro_batches(architecture):
    model = model_of(encoder(architecture=architecture))
    long = cut_windows(letters("언제"), letters("가나다라마바사아"), SMALL, answer=(2, 4), special=3)
    short = cut_windows(letters("누가"), letters("바사아"), SMALL, answer=(0, 1), special=3)
    apart = [reading_loss(model, collate(part, TOKENIZER, SMALL))["loss"] for part in (long, short)]
    together = reading_loss(model, collate([*long, *short], TOKENIZER, SMALL))
    assert together["loss"].item() == pytest.approx(float(sum(apart)) / 2, abs=1e-5)
    assert together["loss"].item() == pytest.approx((together["start_loss"] + together["end_loss"]).item() / 2)
    windows = [*long, *short, *long]
    whole = training_batches(windows, TOKENIZER, SMALL, batch_size=3, seed=0)(0)
    parts = training_batches(windows, TOKENIZER, SMALL, batch_size=3, micro_batches=2, seed=0)(0)
    assert [len(part["input_ids"]) for part in parts] == [2, 1]
    weighted = [
        sum(float(reading_loss(model, part)["loss"] * part["weight"]) for part in step) for step in (whole, parts)
    ]
    assert weighted[0] == pytest.approx(weighted[1], abs=1e-5)


def test_loss_of_a_model_that_knows_nothing_is_that_of_guessing_among_the_choices():
    def indifferent(input_ids, *rest, lengths):
        return torch.zeros(input_ids.shape), torch.zeros(input_ids.shape)

    batch = collate(
        cut_windows(letters("언제"), letters("가나다라마"), SMALL, answer=(2, 4), special=3), TOKENIZER, SMALL
    )
    assert reading_loss(indifferent, batch)["loss"].item() == pytest.approx(np.log(6))  # five pieces and [CLS]
