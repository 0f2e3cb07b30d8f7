import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from korbert.errors import SettingsError
from korbert.records.given import write_rows
from korbert.tasks.files import ROLES, read_rows

TEXTS = ["정말 재미있다", "시간이 아깝다", "또 보고 싶다"]
MOODS = ["긍정", "부정", "긍정"]
PAIRS = list(zip(TEXTS, MOODS, strict=True))


def _data_set(kind):
    import datasets

    classes = datasets.ClassLabel(names=["부정", "긍정"])
    features = datasets.Features({"text": datasets.Value("string"), "label": classes})
    made = datasets.Dataset.from_dict({"text": TEXTS[::-1], "label": [1, 0, 1]}, features=features)
    return datasets.DatasetDict(train=made) if kind == "splits" else made.select([2, 1, 0])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(lambda: PAIRS, id="tuples"),
        pytest.param(lambda: [[np.str_(text), mood] for text, mood in PAIRS], id="lists"),
        pytest.param(lambda: ({"label": mood, "text": text} for text, mood in PAIRS), id="dicts"),
        pytest.param(lambda: pd.DataFrame({"text": TEXTS, "label": MOODS}, index=[7, 3, 5]), id="pandas"),
        pytest.param(lambda: pd.DataFrame({"text": TEXTS, "label": pd.Categorical(MOODS)}), id="categories"),
        pytest.param(lambda: polars.DataFrame({"text": TEXTS, "label": MOODS}), id="polars"),
        pytest.param(lambda: pa.table({"text": TEXTS, "label": MOODS}), id="arrow"),
        pytest.param(lambda: _data_set("one"), id="datasets, selected, with classes"),
    ],
)
def test_rows_of_any_sort_are_read_alike(rows, tmp_path):
    path = write_rows(rows(), tmp_path, "train")
    read = read_rows(path, [ROLES["text"], ROLES["label"]])
    assert [(row["text"], row["label"]) for row in read] == PAIRS
    assert {column for columns in read.columns.values() for column in columns} == {"text", "label"}
    (tmp_path / "again").mkdir()
    assert path.read_bytes() == write_rows(rows(), tmp_path / "again", "train").read_bytes()


def test_numbers_of_numpy_missing_cells_and_pairs(tmp_path):
    numbers = write_rows([{"text": "가", "score": np.float32(1.5), "vector": np.arange(2)}], tmp_path, "train")
    assert numbers.read_text(encoding="utf-8") == '{"text": "가", "score": 1.5, "vector": [0, 1]}\n'
    path = write_rows([("가", "나", "다")], tmp_path, "pairs")
    (row,) = read_rows(path, [ROLES[name] for name in ("text", "pair", "label")])
    assert row == {"text": "가", "pair": "나", "label": "다"}
    frame = pd.DataFrame({"text": TEXTS, "score": [1.0, np.nan, 2.0]})
    read = read_rows(write_rows(frame, tmp_path, "frame"), [ROLES["text"], ROLES["score"]])
    assert [row["score"] for row in read] == [1.0, 2.0]
    assert [*read.dropped] == ["no_score"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "train: holds no row: give a path, a list of tuples or dicts"),
        (3, "train: is a int: give a path"),
        (["가"], r"train\[0\]: '가' is not a row: give a path"),
        (
            [("가", "나"), ("가",)],
            r"train\[1\]: a tuple of 1: give \(text, label\) or \(text, pair, label\), or a dict",
        ),
        ([{"text": "가", "label": {1}}], r"train\[0\]: a set cannot be written as JSON: give texts, numbers and lists"),
        (_data_set("splits"), "train: is a DatasetDict of train: give one of these"),
        (pd.DataFrame({"text": ["가", 1]}), "train: .*: give each column values of one type"),
    ],
)
def test_anything_else_is_refused(rows, said, tmp_path):
    with pytest.raises(SettingsError, match=said):
        write_rows(rows, tmp_path, "train")
