import re

import pytest

from korbert.tasks.files import Span
from korbert.tasks.sets import changes


def refused(what: str):
    return pytest.raises(ValueError, match=f"^{re.escape(what)}$")


@pytest.mark.parametrize(("label", "truth"), [("TRUE", "True"), ("True", "True"), ("1", "True"), ("false", "False")])
def test_truth(label: str, truth: str) -> None:
    assert changes.truth({"label": label, "id": "1"}) == {"label": truth, "id": "1"}


def test_other_labels_are_no_truth() -> None:
    with refused("label '예' is neither true nor false"):
        changes.truth({"label": "예"})


@pytest.mark.parametrize(("first", "label", "place"), [(0, "0", 0), (0, "2", 2), (1, "1", 0), (1, "3", 2)])
def test_chosen(first: int, label: str, place: int) -> None:
    assert changes.chosen(first)({"choices": ["가", "나", "다"], "label": label})["label"] == place


def test_a_choice_that_is_none() -> None:
    with refused("label '3' is none of 0, 1, 2"):
        changes.chosen()({"choices": ["가", "나", "다"], "label": "3"})
    with refused("label '0' is none of 1, 2"):
        changes.chosen_by_question(1)({"choices": ["가", "나"], "label": "0", "text": "가", "question": "원인"})


def test_cause_and_effect_stand_behind_the_premise() -> None:
    row = {"choices": ["가", "나"], "label": "2", "text": "차가 찌그러졌다.", "question": "원인 "}
    assert changes.chosen_by_question(1)(row) == {
        "choices": ["가", "나"],
        "label": 1,
        "text": "차가 찌그러졌다. 원인",
    }


def test_the_word_is_marked_once_where_it_is_not() -> None:
    row = {"word": "방", "text": "방에서 방으로", "pair": "[방] 안의 방", "label": "TRUE"}
    assert changes.word_in_context(row) == {"text": "[방]에서 방으로", "pair": "[방] 안의 방", "label": "True"}


def test_entities() -> None:
    row = {"id": "1", "tokens": list("서울 김씨"), "tags": ["B-LC", "I-LC", "O", "B-PS", "O"]}
    assert changes.entities(row) == {"id": "1", "text": "서울 김씨", "spans": [Span(0, 2, "LC"), Span(3, 4, "PS")]}
    with refused("tag 'X': none of O, B-LABEL and I-LABEL"):
        changes.entities({"id": "1", "tokens": ["가"], "tags": ["X"]})


def test_words() -> None:
    row = {"tokens": ["네", "."], "tags": ["INTJ", "PUNCT"], "spaces": ["SpaceAfter=No|Translit=.ne", "_"]}
    assert changes.words(row)["spaces"] == [False, True]
    with refused("2 tokens and 1 tags"):
        changes.words(row | {"tags": ["INTJ"]})


@pytest.mark.parametrize(
    ("subject", "obj", "text"),
    [
        ((0, 2, "서울"), (4, 6, "한국"), "<subj>서울</subj>은 <obj>한국</obj>의 수도"),
        ((4, 6, "한국"), (0, 2, "서울"), "<obj>서울</obj>은 <subj>한국</subj>의 수도"),
        ((4, 6, "한국"), (4, 10, "한국의 수도"), "서울은 <obj><subj>한국</subj>의 수도</obj>"),
        ((4, 10, "한국의 수도"), (4, 6, "한국"), "서울은 <subj><obj>한국</obj>의 수도</subj>"),
        ((4, 10, "한국의 수도"), (8, 10, "수도"), "서울은 <subj>한국의 <obj>수도</obj></subj>"),
        ((0, 2, "서울"), (2, 3, "은"), "<subj>서울</subj><obj>은</obj> 한국의 수도"),
    ],
)
def test_relation(subject: tuple[int, int, str], obj: tuple[int, int, str], text: str) -> None:
    row = {"text": "서울은 한국의 수도", "subject": subject, "object": obj, "label": "x"}
    assert changes.relation(row) == {"text": text, "label": "x"}


def test_unanswerable() -> None:
    assert changes.unanswerable({"impossible": True, "answers": ["그럴듯한 답"]}) == {"answers": []}
    assert changes.unanswerable({"impossible": None, "answers": ["답"]}) == {"answers": ["답"]}
    with refused("a question without answer that is not said to have none"):
        changes.unanswerable({"impossible": False, "answers": []})


@pytest.mark.parametrize(
    ("role", "cell", "what"),
    [
        ("subject", {"word": "가"}, "is {'word': '가'}, not an object with word, start_idx and end_idx"),
        ("object", "가", "is '가', not an object with word, start_idx and end_idx"),
    ],
)
def test_roles_of_single_sets(role: str, cell: object, what: str) -> None:
    with refused(what):
        changes.EXTRA_ROLES[role].value(cell)
