"""What is held out to validate on: whole groups, or the latest rows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import korbert
from korbert.errors import CorpusError
from korbert.tasks.files import TaskRows
from korbert.tasks.files.cells import moment
from korbert.tasks.files.rows import Place
from korbert.tasks.splits import split_by_time

ROWS = [
    {
        "text": f"{text} {number}",
        "label": label,
        "고객": f"c{number % 7}",
        "날짜": f"2026.{1 + number % 12}.{1 + number % 28}",
    }
    for number in range(30)
    for text, label in (("정말 재미있는 영화", "좋"), ("시간이 아깝다", "싫"))
]


def rows_at(times):
    places = [Place("rows", "row", number) for number in range(len(times))]
    return TaskRows([{"text": str(number), "time": time} for number, time in enumerate(times)], places)


@given(st.lists(st.integers(0, 20), min_size=2).filter(lambda times: len(set(times)) > 1), st.floats(0.05, 0.9))
def test_what_is_held_out_is_later_than_the_rest(times, share):
    earlier, later = split_by_time(rows_at(times), share)
    assert len(earlier)
    assert len(later)
    assert len(earlier) + len(later) == len(times)
    assert max(row["time"] for row in earlier) < min(row["time"] for row in later)


def test_rows_of_one_time_cannot_be_split():
    with pytest.raises(CorpusError, match="all rows have the same time"):
        split_by_time(rows_at([3, 3]), 0.1)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026.1.9", "2026-01-10"),
        ("2026/01/10", "2026-01-10T00:01"),
        ("2026-01-10T10:00+09:00", "2026-01-10 02:00"),
        ("3", 3.5),
        (20260110, "20260111"),
    ],
)
def test_moments_are_in_order(earlier, later):
    assert moment(earlier) < moment(later)


@pytest.mark.parametrize("cell", ["어제", "2026-13-01", "11/29/2026", True])
def test_what_is_no_moment_is_refused(cell):
    with pytest.raises(ValueError, match="neither a number nor a date"):
        moment(cell)


def test_groups_are_held_out_whole():
    result = korbert.finetune("korbert-mini", ROWS, group="고객", only="encoder", epochs=1, baselines=False)
    lines = [json.loads(line) for line in (result.folder / "predictions.jsonl").read_text("utf-8").splitlines()]
    groups = {line["group"] for line in lines}
    assert len(lines) == sum(row["고객"] in groups for row in ROWS)
    assert any("whole groups" in note for note in result.notes)


def test_the_latest_rows_are_held_out():
    result = korbert.finetune("korbert-mini", ROWS, time="날짜", quick=True, baselines=False)
    assert result.scored_on == "valid"
    lines = [json.loads(line) for line in (result.folder / "predictions.jsonl").read_text("utf-8").splitlines()]
    held = min(line["time"] for line in lines)
    assert len(lines) == sum(moment(row["날짜"]) >= held for row in ROWS)


def test_the_command_has_both(command, here):
    (here / "rows.jsonl").write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS), "utf-8")
    command("finetune", "korbert-mini", "--train", "rows.jsonl", "--quick", "--group", "고객", "--output", "by-group")
    record = json.loads((here / "by-group" / "scores.json").read_text("utf-8"))
    assert record["scored_on"] == "folds"
    assert "group" not in record["task"]["columns"]
    assert (
        "no column '없음' for time"
        in command(
            "finetune", "korbert-mini", "--train", "rows.jsonl", "--time", "없음", "--output", "none", code=2
        ).err
    )
