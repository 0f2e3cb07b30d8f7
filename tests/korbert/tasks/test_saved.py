"""`task` of config.json, as damaged by hand: one line with file and field."""

from functools import partial
from typing import Any

import pytest

from korbert.errors import ModelError
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.question_answering.settings import ReadingSettings
from korbert.tasks.saved import Lengths, of_config

LABELS = {"kind": "classification", "metrics": ["accuracy"], "max_length": 64, "labels": ["나쁨", "좋음"]}


@pytest.mark.parametrize(
    ("read", "task", "said"),
    [
        (Lengths, {"max_length": []}, "task.max_length: Input should be a valid integer"),
        (Lengths, {"max_length": 0}, "task.max_length: Input should be greater than or equal to 3"),
        (Lengths, {"max_length": "64"}, "task.max_length: Input should be a valid integer"),
        (Lengths, {"stride": [32]}, "task.stride: Input should be a valid integer"),
        (ReadingSettings, {"n_best": []}, "task.n_best: Input should be a valid integer"),
        (ReadingSettings, {"max_length": None}, "task.max_length: Input should be a valid integer"),
        (ReadingSettings, {"max_length": 64}, "task: Value error, max_length 64 leaves"),
        (ReadingSettings, {"more": 1}, "task.more: Extra inputs are not permitted"),
        (None, LABELS | {"max_length": None}, "task.max_length: Input should be a valid integer"),
        (None, LABELS | {"metrics": []}, "task.metrics: Tuple should have at least 1 item"),
        (None, LABELS | {"labels": 3}, "task.labels: Input should be a valid tuple"),
    ],
)
def test_a_damaged_entry_is_named(read: Any, task: dict[str, Any], said: str) -> None:
    parse = {None: kind_of_task, ReadingSettings: ReadingSettings.of_task}.get(read, partial(of_config, read))
    with pytest.raises(ModelError) as caught:
        parse(task, "models/mood")
    assert str(caught.value).startswith(f"models/mood/config.json: {said}")
    assert str(caught.value).endswith(": put the file back as it was written")
    assert "\n" not in str(caught.value)
