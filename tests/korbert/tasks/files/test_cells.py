"""Cells as values: CSV's strings and JSON's values of each role."""

import math

import pytest

from korbert.records.table import is_empty
from korbert.tasks.files import ROLES, GoldAnswer, LabelledSpan
from korbert.tasks.files.cells import QuotedSpan

HUGE = 10**309  # more than a float holds


@pytest.mark.parametrize(
    ("role", "cell", "value"),
    [
        ("text", " 앞뒤 공백 ", " 앞뒤 공백 "),
        ("text", 0, "0"),
        ("label", " 긍정\r", "긍정"),
        ("label", 1.0, "1"),
        ("label", False, "False"),
        ("label", 2.5, "2.5"),
        ("labels", "기쁨, 슬픔", ["기쁨", "슬픔"]),
        ("labels", "a, b|c", ["a, b", "c"]),
        ("labels", '["a", "b"]', ["a", "b"]),
        ("labels", "['a', 'b']", ["a", "b"]),
        ("labels", '{"choices": ["a", "b"]}', ["a", "b"]),  # in CSV of Label Studio
        ("label", '{"choices": ["a"]}', "a"),
        ("labels", "['a' 'b']", ["a", "b"]),  # numpy's, as pandas writes arrays
        ("labels", "[1 0]", ["1", "0"]),
        ("answers", "['서울' '부산']", [GoldAnswer("서울", None), GoldAnswer("부산", None)]),
        ("labels", [1, 0], ["1", "0"]),
        ("labels", [], []),
        ("labels", 3, ["3"]),
        ("labels", ["a", "", {"choices": [" ", "b"]}], ["a", "b"]),
        ("label", ["", "긍정"], "긍정"),
        ("score", " 4.25 ", 4.25),
        ("score", 3, 3.0),
        ("tokens", "나는 학교에 간다", ["나는", "학교에", "간다"]),
        ("tokens", '["나", " "]', ["나", " "]),
        ("tokens", ["나", " "], ["나", " "]),
        ("tags", "['O', 'B-PS']", ["O", "B-PS"]),
        ("tags", "['O' 'B-PS'\n 'I-PS']", ["O", "B-PS", "I-PS"]),
        ("choices", ["가", "나"], ["가", "나"]),
        ("choices", ["가", "나", "", None], ["가", "나"]),
        ("choices", '["가", "나"]', ["가", "나"]),
        ("answers", "서울", [GoldAnswer("서울", None)]),
        ("answers", ["서울", "부산"], [GoldAnswer("서울", None), GoldAnswer("부산", None)]),
        ("answers", {"text": ["서울"], "answer_start": [3]}, [GoldAnswer("서울", 3)]),
        ("answers", [{"text": "서울", "answer_start": 3}], [GoldAnswer("서울", 3)]),
        ("answers", {"text": "서울", "answer_start": 3}, [GoldAnswer("서울", 3)]),
        ("answers", '{"text": ["서울"], "answer_start": [3]}', [GoldAnswer("서울", 3)]),
        ("answers", {"text": [], "answer_start": []}, []),
        ("answers", [], []),
        ("answers", "[]", []),
        ("answers", 42, [GoldAnswer("42", None)]),
        ("impossible", False, False),
        (
            "slots",
            '{"가는 곳": {"value": "서울", "start": 3}, "날": null}',
            {"가는 곳": GoldAnswer("서울", 3), "날": None},
        ),
        ("slots", {"수": "any", "날": " ", "칸": "5"}, {"수": "any", "날": None, "칸": GoldAnswer("5", None)}),
        ("descriptions", {"수": "몇 장 필요한가"}, {"수": "몇 장 필요한가"}),
        ("impossible", " TRUE ", True),
        ("impossible", "0", False),
        (
            "spans",
            [{"start": 4, "end": 5, "label": "B"}, [0, 2, "A"]],
            [LabelledSpan(0, 2, "A"), LabelledSpan(4, 5, "B")],
        ),
        ("spans", {"start": [0], "end": [2], "label": ["A"]}, [LabelledSpan(0, 2, "A")]),
        ("spans", '[{"start": 0, "end": 2, "type": "A"}]', [LabelledSpan(0, 2, "A")]),
        ("spans", "[]", []),
        ("spans", [{"start": 3, "end": 3, "label": "A", "text": "나"}], [QuotedSpan(3, 3, "A", "나")]),
        ("time", "1970-01-02", 86_400.0),
        ("time", 3.5, 3.5),
        ("time", "3.5", 3.5),
    ],
)
def test_values(role, cell, value):
    assert ROLES[role].value(cell) == value


@pytest.mark.parametrize(
    ("role", "cell", "said"),
    [
        ("text", {"a": 1}, "is an object, not a text"),
        ("text", b"ab", "is of type bytes, not a text"),
        ("text", "a\0", "has a NUL byte at character 1"),
        ("slots", "서울", "is '서울', not an object of names and values"),
        ("slots", {"": "서울"}, "is {'': '서울'}, not an object of names and values"),
        ("slots", {"날": []}, "has a part 날 that is a list, not a text"),
        (
            "slots",
            {"날": {"value": "5일", "start": -1}},
            "has a part 날 that has answer_start -1, not a character from 0",
        ),
        ("descriptions", {"날": None}, "has a part 날 that is missing, not a text"),
        ("score", "높음", "is '높음', not a finite number"),
        ("impossible", "no", "is 'no', neither true nor false"),
        ("impossible", 2, "is 2, neither true nor false"),
        ("score", True, "is True, not a finite number"),
        ("score", "inf", "is 'inf', not a finite number"),
        ("score", [1], r"is \[1\], not a finite number"),
        ("tokens", 3, "is 3, not a list of texts"),
        ("tokens", [], r"is \[\], not a list of texts"),
        ("tokens", ["가", None], "has a part 1 that is missing, not a text"),
        ("choices", "가나", "is '가나', not a list of choices"),
        ("choices", ["가"], "not two choices or more"),
        ("choices", ["가", "", "나"], "not two choices or more without gaps"),
        ("answers", [{"text": "가", "answer_start": -1}], "has a part 0 that has answer_start -1, not a character"),
        ("answers", [{"answer_start": 1}], "has a part 0 that is missing, not a text"),
        ("answers", {"text": ["가"], "answer_start": []}, "whose lists differ in length"),
        ("answers", 1.5, "is 1.5, not answers"),
        ("spans", "가", "is '가', not a list of spans"),
        ("spans", [[2, 1, "A"]], "where start and end are not characters"),
        ("spans", [[1, 2]], "not start, end and label"),
        ("spans", [["0", "하나", "A"]], "where start and end are not characters"),
        ("spans", [[1, 1, "A"]], "where start and end are not characters"),
        ("spans", [{"start": 1, "end": 1, "label": "A", "text": ""}], "where start and end are not characters"),
        ("spans", [[0, HUGE, "A"]], "where start and end are not characters"),
        ("label", ["", " "], "is a list without a label"),
        ("labels", [None], "is missing, not a text"),
        ("labels", [1, math.nan], "is a number with a fraction, not a text"),
        ("score", HUGE, r"is 1000+\.\.\., not a finite number"),
        ("vector", [HUGE], "not a list of finite numbers"),
        ("vector", [1e39], r"is \[1e\+39\], not a list of finite numbers"),
        ("starts", HUGE, "not a character from 0"),
        ("time", HUGE, "neither a number nor a date"),
        ("time", "nan", "is 'nan', neither a number nor a date"),
        ("time", "Infinity", "is 'Infinity', neither a number nor a date"),
        ("time", "2026.10", "is '2026.10', a number or a month: write a date such as 2026-10-01"),
        ("time", 2026.1, "is '2026.1', a number or a month"),
    ],
)
def test_invalid_cells_are_explained(role, cell, said):
    with pytest.raises(ValueError, match=said):
        ROLES[role].value(cell)


def test_empty_cells():
    assert all(map(is_empty, ["", " \t", "\u3000", None, math.nan]))
    assert not any(map(is_empty, ["NA", "null", 0, False, [], {}]))
