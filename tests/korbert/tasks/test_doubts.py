"""What looks wrong in labelled rows is said, with its number and its places."""

import pytest

from korbert.tasks.doubts import doubts
from korbert.tasks.files import Place, TaskRows
from korbert.tasks.kinds.classification import Classification


def _rows(file, pairs):
    rows = [{"text": text, "pair": None, "label": label} for text, label in pairs]
    return TaskRows(rows, [Place(file, "line", number) for number in range(2, len(rows) + 2)])


def _doubts(train, **others):
    kind = Classification(metrics=("accuracy",), max_length=8, labels=("가", "나"))
    parts = {"train": train} | others
    return list(
        doubts(
            kind, {name: _rows("a.csv" if name == "train" else f"{name}.csv", pairs) for name, pairs in parts.items()}
        )
    )


def _labelled(counts):
    return [(f"{label} {number}", label) for label, count in counts.items() for number in range(count)]


@pytest.mark.parametrize(("counts", "said"), [
    ({"긍정": 1_999, "긍점": 1}, "'긍점' (rows: 1) may be a slip of '긍정' (rows: 1,999): a.csv, line 2001"),
    ({"긍정": 20, "긍저": 2}, "'긍저' (rows: 2) may be a slip of '긍정' (rows: 20): a.csv, line 22; a.csv, line 23"),
    ({"A형": 5, "Ａ형": 1}, "'Ａ형' (rows: 1) may be a slip of 'A형' (rows: 5): a.csv, line 7"),
    ({"Good": 2, "good": 1}, "'good' (rows: 1) may be a slip of 'Good' (rows: 2): a.csv, line 4"),
    ({"매우 좋음": 5, "매우좋음": 1}, "'매우좋음' (rows: 1) may be a slip of '매우 좋음' (rows: 5): a.csv, line 7"),
    ({"politics": 50, "poiltics": 1}, "'poiltics' (rows: 1) may be a slip of 'politics' (rows: 50): a.csv, line 52"),
])  # fmt: skip
def test_a_label_that_looks_like_a_slip_is_said(counts, said):
    assert _doubts(_labelled(counts)) == [f"label {said}"]


@pytest.mark.parametrize("counts", [
    {"긍정": 3_000, "부정": 1}, {"남": 90, "여": 2}, {"1점": 90, "2점": 2, "10점": 2}, {"남성": 300, "여성": 3},
    {"찬성": 30, "반성": 20}, {"person": 90, "per": 1}, {"class_1": 90, "class_2": 1},
])  # fmt: skip
def test_a_label_that_is_meant_is_not_doubted(counts):
    assert _doubts(_labelled(counts)) == []


def test_a_text_with_two_labels_is_said_and_one_that_is_repeated_is_not():
    rows = [
        ("좋다", "가"),
        ("나쁘다", "나"),
        ("좋다 ", "나"),
        ("나쁘다", "나"),
        ("쓰다", ["가", "나"]),
        ("쓰다", ["나", "가"]),
    ]
    assert _doubts(rows) == ["texts with different labels: 1: '가' (a.csv, line 2), '나' (a.csv, line 4)"]


def test_rows_to_score_that_are_training_rows_are_said():
    rows = [("좋다", "가"), ("나쁘다", "나")]
    assert _doubts(rows, valid=[("새 글", "가")], test=[("맛있다", "가"), ("나쁘다", "나")]) == [
        "test rows with the texts of a training row: 1 of 2: test.csv, line 3"
    ]
