"""The sets at hand, whole: every row is read, and kinds take them. Cells are compared with pandas in test_sets.py."""

import os

import pytest

from korbert.tasks.kinds import KINDS
from korbert.tasks.sets import SETS
from korbert.tasks.sets.loading import files_at_hand, load

PREDICTION = {
    "classification": lambda target: {"label": target},
    "multiple-choice": lambda target: {"choice": target},
    "regression": lambda target: target,
    "token-classification": lambda target: target,
    "question-answering": lambda target: {"answer": target[0]["text"] if target else ""},
}
MISSING = {"klue-ner": 21_008 - 5_000}  # training rows that the file at hand lacks


NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name in ("klue-ner", "nsmc") else ())
    for name in SETS
    if name not in {"klue-tc", "klue-re", "klue-mrc", "mrpc", "sst-2"}  # not at hand
]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_read_and_all_that_is_right_scores_1(korbert_data, name):
    """Without a training part, the validation part is cut: no row is lost, and none is in two parts."""
    if not (korbert_data / "tasks").is_dir() and not os.environ.get("KORBERT_DATA_IS_REQUIRED"):
        pytest.skip(f"{korbert_data / 'tasks'} is not there: docs/data.md says where to get the sets")
    known = SETS[name]
    parts, entry = load(name, korbert_data), KINDS[known.kind]
    given = [rows for rows in (parts.train, parts.valid, parts.test) if rows is not None]
    places = [str(place) for rows in given for place in rows.places]
    dropped = sum(dropped.count for rows in given for dropped in rows.dropped.values())
    assert dropped == 0 or name == "nsmc"  # empty reviews
    official = sum(known.size[part] for part in files_at_hand(known, korbert_data)) - MISSING.get(name, 0)
    assert len(places) == len(set(places)) == sum(map(len, given)) == official - dropped

    kind = entry.kind_class.from_training_rows(parts.train, entry.section_class(set=name, metrics=known.metrics))
    targets = [kind.target(row) for row in parts.test]
    assert all(text.strip() for row in parts.test for text in kind.texts(row))
    scores = kind.scores(parts.test.rows, [PREDICTION[known.kind](target) for target in targets])
    assert scores == pytest.approx(dict.fromkeys(known.metrics, 1.0))
