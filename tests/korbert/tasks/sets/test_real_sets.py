"""The sets at hand, whole. Numbers of rows and labels were counted by other means: lines, `csv`, `json`."""

import csv
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from korbert.tasks.sets import SETS
from korbert.tasks.sets.loading import load
from korbert.tasks.token_classification.bio import read_bio

LABELS = {  # of the test part, or of all rows where the dev set is cut without one
    "klue-nli": {"contradiction": 1_000, "entailment": 1_000, "neutral": 1_000},
    "kobest-boolq": {"True": 705, "False": 699},
    "kobest-copa": {"0": 517, "1": 483},
    "kobest-hellaswag": {"0": 124, "1": 137, "2": 121, "3": 118},
    "kobest-sentineg": {"1": 200, "0": 197},
    "kobest-wic": {"True": 615, "False": 645},
    "kornli": {"contradiction": 1_670, "entailment": 1_670, "neutral": 1_670},
    "question-pair": {"0": 359, "1": 329},
    "hate-speech": {"none": 160, "offensive": 189, "hate": 122},
}


def rows_in(path):
    """Counted without any code of ours: sentences by their marks, items, records of csv, or lines below the header."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".json":
        return len(json.loads(text))
    if path.suffix == ".conllu":
        return text.count("# sent_id = ")
    if "klue-ner" in path.name:
        return text.count("\n## klue-ner")
    if path.suffix == ".csv" or path.parent.name in ("HellaSwag", "hate_speech"):
        with path.open(encoding="utf-8-sig", newline="") as file:
            return sum(1 for _ in csv.reader(file, delimiter="," if path.suffix == ".csv" else "\t")) - 1
    return text.rstrip("\n").count("\n")


def there(parts):
    return [rows for rows in (parts.train, parts.valid, parts.test) if rows is not None]


AT_HAND = sorted({*LABELS, "klue-ner", "klue-sts", "korsts", "ud-kaist"})


@pytest.fixture(scope="module")
def loaded(korbert_data):
    if not (korbert_data / "tasks").is_dir() and not os.environ.get("KORBERT_DATA_IS_REQUIRED"):
        pytest.skip(f"{korbert_data / 'tasks'} is not there: docs/data.md says where to get the sets")
    return {name: load(name, korbert_data) for name in AT_HAND}


@pytest.mark.parametrize("name", AT_HAND)
def test_every_row_is_read(loaded, name):
    """Each file of a part has as many rows as are in it, and as the authors say; none is dropped."""
    read = Counter[Path]()
    for rows in there(loaded[name]):
        assert not rows.dropped
        assert len(rows) == len(rows.places) == sum(source.rows for source in rows.sources)
        for source in rows.sources:
            read[Path(source.file)] += source.rows
    official = {file: SETS[name].size[part] for part, (file, *_) in SETS[name].files[0].parts.items()}
    official["klue-ner-mini_train.tsv"] = 5_000
    for path, count in read.items():
        assert count == rows_in(path) == official[path.name], path


@pytest.mark.parametrize("name", LABELS)
def test_labels(loaded, name):
    parts = loaded[name]
    counted = there(parts) if name == "klue-nli" else [parts.test]
    assert Counter(row["label"] for rows in counted for row in rows) == LABELS[name]


def test_entities_of_klue(loaded):
    parts = loaded["klue-ner"]
    assert (len(parts.train), parts.valid, len(parts.test)) == (5_000, None, 5_000)
    labels = Counter(label for row in parts.test for _, _, label in read_bio(row["tags"]))
    assert labels == {"PS": 4_418, "QT": 3_151, "DT": 2_312, "OG": 2_182, "LC": 1_649, "TI": 545}
    first = parts.test.rows[0]
    words = [(first["text"][start:end], label) for start, end, label in read_bio(first["tags"])]
    assert words == [("경찰", "OG"), ("박", "PS"), ("32", "QT"), ("김", "PS"), ("33", "QT"), ("16명", "QT")]
    assert parts.notes == (
        "klue-ner-mini_train.tsv has 5,000 of the 21,008 training sentences: not comparable with published scores",
        "no labelled test set is published: klue-ner-v1.1_dev.tsv is the test set, choices are made on a share of"
        " train",
    )


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("klue-sts", (302, 96, 121)),
        ("klue-nli", (1_722, 657, 621)),
        ("kornli", (2_010, 480, 5_010)),
        ("ud-kaist", (1_667, 399, 2_287)),
    ],
)
def test_what_is_cut(loaded, name, counts):
    """Always the same rows, and none in two parts; a premise and all its hypotheses stand in one."""
    parts = loaded[name]
    assert tuple(map(len, there(parts))) == counts
    texts = [{str(row.get("text") or row["tokens"]) for row in rows} for rows in (parts.train, parts.valid or [])]
    assert not texts[0] & texts[1]
    if "test" not in {part for files in SETS[name].files for part in files.parts}:
        assert not (texts[0] | texts[1]) & {row["text"] for row in parts.test}
    assert "not comparable" in parts.notes[0]
    places = [str(place) for rows in there(parts) for place in rows.places]
    assert len(places) == len(set(places))
