"""The rows of the sets at hand are what their kinds take: all that is right scores 1 in every metric of the table."""

import os

import pytest

from korbert.tasks.kinds import KINDS
from korbert.tasks.sets import SETS
from korbert.tasks.sets.loading import load

PREDICTION = {
    "classification": lambda target: {"label": target},
    "multiple-choice": lambda target: {"choice": target},
    "regression": lambda target: target,
    "token-classification": lambda target: target,
    "question-answering": lambda target: {"answer": target[0]["text"] if target else ""},
}


NOT_AT_HAND = {"klue-tc", "klue-re", "klue-mrc", "mrpc", "sst-2"}


@pytest.mark.parametrize("name", [name for name in SETS if name not in NOT_AT_HAND])
def test_kinds_take_them(korbert_data, name):
    if not (korbert_data / "tasks").is_dir() and not os.environ.get("KORBERT_DATA_IS_REQUIRED"):
        pytest.skip(f"{korbert_data / 'tasks'} is not there: docs/data.md says where to get the sets")
    known = SETS[name]
    parts, entry = load(name, korbert_data), KINDS[known.kind]
    section = entry.section_class
    kind = entry.kind_class.learned_from(parts.train, section(set=name, metrics=known.metrics))
    targets = [kind.target(row) for row in parts.test]
    assert all(text.strip() for row in parts.test for text in kind.texts(row))
    scores = kind.scores(parts.test.rows, [PREDICTION[known.kind](target) for target in targets])
    assert scores == pytest.approx(dict.fromkeys(known.metrics, 1.0))
