"""Slots with descriptions: what a row asks, its target, its examples, the baseline, and scores counted by hand."""

import numpy as np
import pytest

from korbert.tasks.files import GoldAnswer
from korbert.tasks.kinds.slots import Slots
from korbert.tasks.splits import Splits
from tests.korbert.tasks.answering import TOKENIZER, letters

TRAIN, ROOM = {"도착역": "기차에서 내리는 곳", "좌석": "앉고 싶은 자리"}, {"객실 종류": "원하는 방의 종류"}
KIND = Slots(
    metrics=("slot_f1",), max_length=32, stride=4, max_query_pieces=12,
    descriptions={name: (own, f"{own}, 다른 말로") for name, own in TRAIN.items()},
)  # fmt: skip
TEXT = "부산에서 서울, 서울에서 부산"


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        ({}, TRAIN),
        ({"descriptions": ROOM}, ROOM),
        ({"slots": {"도착역": None}, "descriptions": ROOM}, {"도착역": "도착역", **ROOM}),
        ({"slots": {"좌석": "any"}, "descriptions": {"좌석": "어떤 자리"}}, {"좌석": "어떤 자리"}),
    ],
)
def test_the_slots_asked_are_those_of_the_row_or_of_training(row, asked):
    assert KIND.asked({"text": TEXT, **row}) == asked


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (None, None),
        ("any", "any"),
        (GoldAnswer("서울", None), {"value": "서울", "start": 5, "end": 7}),
        (GoldAnswer("서울", 9), {"value": "서울", "start": 9, "end": 11}),
        (["부산", 14], {"value": "부산", "start": 14, "end": 16}),  # as predictions.jsonl has it
    ],
)
def test_a_target_says_where_the_value_stands(value, target):
    assert KIND.target({"text": TEXT, "slots": {"도착역": value}}) == {"도착역": target}


def test_any_is_the_separator_behind_the_description():
    row = {"text": "가나다라마", "slots": {"도착역": GoldAnswer("다라", 2), "좌석": "any", "시각": None}}
    passages = list(map(letters, KIND.texts(row)))  # the names describe themselves
    batch = KIND.prepare([row], [passages], TOKENIZER).examples.batch(np.arange(3))
    assert batch["start_positions"].tolist() == [5 + 2, 3, 0]
    assert batch["end_positions"].tolist() == [5 + 3, 3, 0]
    choices = [chosen.nonzero().flatten().tolist() for chosen in batch["choices"]]
    assert choices == [[0, *range(4, 10)], [0, *range(3, 9)], [0, *range(3, 9)]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("강남역 근처 식당에 가요", {"value": "강남역 근처 식당", "start": 0, "end": 9}),
        ("멀리 부산 자갈치시장에 가요", {"value": "부산 자갈치시장", "start": 3, "end": 11}),
        ("빨리 와", None),
    ],
)
def test_the_baseline_copies_the_longest_noun_phrase_to_every_slot(text, value):
    (baseline,) = KIND.baselines(Splits([], [], [{"text": text, "slots": dict.fromkeys("가나")}]), {})
    assert baseline.predictions == [{"가": value, "나": value}]


SCORED = [  # slots, descriptions, prediction
    ({"도착역": ["서울", 0], "좌석": ["창가", 3]}, TRAIN, {"도착역": {"value": "서울"}, "좌석": {"value": "창"}}),
    ({"도착역": ["서울", 0], "객실 종류": ["온돌", 6]}, {**TRAIN, **ROOM},
     {"도착역": {"value": "서울"}, "좌석": None, "객실 종류": {"value": "온돌"}}),
    ({"객실 종류": "any"}, ROOM, {"객실 종류": None}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "count", "score"),
    [
        ("slot_f1", 3, 2 * 3 / (4 + 5)),  # right, given and true values
        ("joint_accuracy", 3, 1 / 3),
        ("seen_slot_f1", 3, 2 * 2 / (3 + 3)),
        ("seen_joint_accuracy", 3, 1 / 2),  # of the two rows that have a slot of training
        ("unseen_slot_f1", 3, 2 * 1 / (1 + 2)),
        ("unseen_joint_accuracy", 3, 1 / 2),
        ("unseen_slot_f1", 1, None),
        ("unseen_joint_accuracy", 1, None),
    ],
)
def test_scores_by_hand(metric, count, score):
    rows = [{"text": "서울 창가 온돌", "slots": slots, "descriptions": own} for slots, own, _ in SCORED[:count]]
    run = KIND.run(rows, [prediction for _, _, prediction in SCORED[:count]])
    assert KIND.score(metric)(run, np.ones(count, np.int64)) == score


def test_a_value_without_a_letter_is_refused():
    with pytest.raises(ValueError, match="slot '도착역' has an empty value"):
        KIND.target({"text": TEXT, "slots": {"도착역": GoldAnswer(" ", 3)}})
