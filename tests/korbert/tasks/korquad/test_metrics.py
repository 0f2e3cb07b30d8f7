import json
import logging
from fractions import Fraction
from pathlib import Path

import pytest

from korbert.errors import CorpusError
from korbert.tasks.files import GoldAnswer, Place, TaskRows
from korbert.tasks.korquad.metrics import exact_match, f1, normalize, score

CASES = json.loads(Path(__file__).with_name("metrics_cases.json").read_text(encoding="utf-8"))
assert len({case["rule"] for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_a_rule(case):
    assert exact_match(case["prediction"], case["answers"]) is case["exact_match"]
    assert f1(case["prediction"], case["answers"]) == pytest.approx(float(Fraction(case["f1"])), abs=1e-12)


def test_all_cases_of_the_official_script(korbert_data):
    cases = json.loads((korbert_data / "korquad1" / "score_cases.json").read_text(encoding="utf-8"))
    assert len(cases) == 3000
    for case in cases:
        assert exact_match(case["prediction"], case["answers"]) == case["exact_match"], case
        assert f1(case["prediction"], case["answers"]) == case["f1"], case


def dataset(**answers):
    rows = TaskRows(
        [{"id": id, "answers": [GoldAnswer(text, None) for text in texts]} for id, texts in answers.items()]
    )
    for number in range(len(rows)):
        rows.places.append(Place("dev.json", "record", number + 1))
    return rows


def test_score_is_in_percent_and_of_all_questions(caplog):
    assert normalize(" 《Kiwi》의,\t한-국 ") == "kiwi 의 한국"
    rows = dataset(a=["서울"], b=["서울"], c=["부산", "이순신"])
    with caplog.at_level(logging.WARNING):
        found = score(rows, {"a": "서울", "b": "서울은", "c": "이순신"})
    assert found == {"exact_match": 100 * 2 / 3, "f1": pytest.approx(100 * 2.8 / 3)}
    assert not caplog.records
    found = score(dataset(a=["서울"], b=["서울"]), {"a": "서울", "z": "서울"})
    assert found == {"exact_match": 50.0, "f1": 50.0}
    assert "1 of 2 questions have no prediction" in caplog.text
    with pytest.raises(CorpusError, match=r"dev.json, record 2: question b has no answer: give a file with answers"):
        score(dataset(a=["서울"], b=[]), {})
