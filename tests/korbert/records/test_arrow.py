import json
import unicodedata

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from korbert.errors import CorpusError
from korbert.records import cell_of
from korbert.tasks.files import ROLES, read_rows

TEXT, LABEL, TOKENS, TAGS = (ROLES[name] for name in ("text", "label", "tokens", "tags"))
FEATURES = datasets.Features(
    text=datasets.Value("string"),
    label=datasets.ClassLabel(names=["부정", "긍정"]),
    tokens=datasets.List(datasets.Value("string")),
    ner_tags=datasets.List(datasets.ClassLabel(names=["O", "B-PS"])),
)


def _dataset(count=5):
    return datasets.Dataset.from_dict(
        {
            "text": [f"문장 {number}" for number in range(count)], "label": [number % 2 for number in range(count)],
            "tokens": [["문장", str(number)] for number in range(count)], "ner_tags": [[0, 1] for _ in range(count)],
        },
        features=FEATURES,
    )  # fmt: skip


def test_a_saved_dataset_has_names_for_its_classes(tmp_path):
    _dataset().save_to_disk(tmp_path / "a", num_shards=2)
    rows = read_rows(tmp_path / "a", [TEXT, LABEL, TOKENS, TAGS])
    assert rows.rows[3] == {"text": "문장 3", "label": "긍정", "tokens": ["문장", "3"], "tags": ["O", "B-PS"]}
    assert len(rows) == 5
    assert str(rows.places[4]) == f"{tmp_path / 'a'}, record 5"
    assert rows.sources[0].form == "Arrow of datasets"
    _dataset().select([4, 0]).save_to_disk(tmp_path / "selected")
    assert [row["text"] for row in read_rows(tmp_path / "selected", [TEXT])] == ["문장 4", "문장 0"]


def test_splits_are_given_one_at_a_time(tmp_path):
    datasets.DatasetDict({"train": _dataset(3), "validation": _dataset(2)}).save_to_disk(tmp_path / "both")
    with pytest.raises(CorpusError, match=r"both: has the splits train, validation: give one, as .*both/train"):
        read_rows(tmp_path / "both", [TEXT])
    read = {name: len(read_rows(tmp_path / "both" / name, [TEXT, LABEL])) for name in ("train", "validation")}
    assert read == {"train": 3, "validation": 2}
    datasets.DatasetDict({"test": _dataset(2)}).save_to_disk(tmp_path / "one")
    assert len(read_rows(tmp_path / "one", [TEXT])) == 2


@pytest.mark.parametrize("record", [
    {"splits": 3}, {"splits": "train"}, {"splits": [3]}, {"splits": {"train": 1}}, {"splits": ["../secret"]},
    {"splits": ["a\x00"]}, {"_data_files": 3}, {"_data_files": [3]}, {"_data_files": [{}]}, {"_data_files": []},
    {"_data_files": [{"filename": "../a.arrow"}]}, {"_data_files": [{"filename": ".."}]},
])  # fmt: skip
def test_a_record_of_wrong_types_or_paths_is_refused(tmp_path, record):
    path = tmp_path / ("dataset_dict.json" if "splits" in record else "state.json")
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(CorpusError, match=rf"{path.name}: .* is not the name of a file or folder next to it: get"):
        read_rows(tmp_path, [TEXT])


def test_a_missing_file_of_a_dataset_is_named(tmp_path):
    _dataset().save_to_disk(tmp_path / "a", num_shards=2)
    (tmp_path / "a" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(CorpusError, match=r"data-00001-of-00002.arrow: no such file, and .*state.json names it"):
        read_rows(tmp_path / "a", [TEXT])
    (tmp_path / "a" / "state.json").write_text("{}")
    with pytest.raises(CorpusError, match=r"state.json: not a record of `datasets` with '_data_files'"):
        read_rows(tmp_path / "a", [TEXT])


def test_parquet_of_datasets_keeps_the_names_and_minus_one_is_none(tmp_path):
    rows = {"text": ["가", "나"], "label": [1, -1], "tokens": [["가"], ["나"]], "ner_tags": [[0], [1]]}
    datasets.Dataset.from_dict(rows, features=FEATURES).to_parquet(tmp_path / "a.parquet")
    read = read_rows(tmp_path / "a.parquet", [TEXT, LABEL])
    assert read.rows == [{"text": "가", "label": "긍정"}]
    assert read.dropped["no_label"].count == 1


def test_columns_inside_structs_are_named_by_path(tmp_path):
    rows = [{"sentence1": "가", "labels": {"label": 4.9, "binary": 1}}, {"sentence1": "나", "labels": None}]
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "a.parquet")
    datasets.Dataset.from_list(rows).to_json(tmp_path / "a.jsonl", force_ascii=False)
    for name in ("a.parquet", "a.jsonl"):
        read = read_rows(tmp_path / name, [TEXT, ROLES["score"]], columns={"score": "labels.label"})
        assert read.rows == [{"text": "가", "score": 4.9}], name
        assert read.dropped["no_score"].count == 1, name


def test_names_with_dots_are_read_as_they_are_listed(tmp_path):
    name = unicodedata.normalize("NFD", "등급")
    record = {"sentence1": "가", "v1": {"x": 1}, "v1.0": {name: {"a.b": 4.9}}, f"{name}.b": 3}
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n", "utf-8")
    for file in ("a.parquet", "a.jsonl"):
        for column, score in ((f"v1.0.{name}.a.b", 4.9), ("v1.0.등급.a.b", 4.9), ("v1.x", 1), ("등급.b", 3)):
            read = read_rows(tmp_path / file, [TEXT, ROLES["score"]], columns={"score": column})
            assert read.rows == [{"text": "가", "score": score}], (file, column)
    assert cell_of(record, "v1.0.등급.a.b") == 4.9
    assert cell_of(record, "v1.0.등급.a.c") is None
