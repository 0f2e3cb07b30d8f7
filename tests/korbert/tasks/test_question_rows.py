"""Rows of anybody's file as questions with their right answers."""

import unicodedata

import pytest

from korbert.tasks.files import GoldAnswer
from korbert.tasks.question_answering.answers import right_answers

CONTEXT = "세종은 1443년에 한글을 만들었다. 세종은 왕이다."


def row(*answers, **changes):
    return {"id": None, "context": CONTEXT, "question": "누구?", "answers": list(answers)} | changes


def test_places_of_answers():
    """Also where answer and context are in other normal forms."""
    both = [GoldAnswer("한글", 11), GoldAnswer("1443년", 4)]
    assert right_answers(row(*both)) == both
    assert right_answers(row(GoldAnswer(" 1443년 ", None))) == both[1:]
    assert right_answers(row(GoldAnswer("세종", None))) == [GoldAnswer("세종", 0)]  # the first of two
    nfd = {text: unicodedata.normalize("NFD", text) for text in (CONTEXT, "한글")}
    place = nfd[CONTEXT].index(nfd["한글"])
    for given in (GoldAnswer("한글", None), GoldAnswer("한글", place), GoldAnswer(nfd["한글"], None)):
        assert right_answers(row(given, context=nfd[CONTEXT])) == [GoldAnswer(nfd["한글"], place)]
    assert right_answers(row(GoldAnswer(nfd["한글"], 11))) == [GoldAnswer("한글", 11)]


def test_questions_without_answer():
    empty = [row(GoldAnswer("", 0)), row(GoldAnswer(" ", None), impossible=None), row(impossible=True)]
    as_in_klue_mrc = row(GoldAnswer("한글", 11), impossible=True)
    for without in (row(), row(answers=None), *empty, as_in_klue_mrc):
        assert right_answers(without) == []
    assert right_answers(row(GoldAnswer("한글", 11), impossible=False)) == [GoldAnswer("한글", 11)]


def test_answers_that_are_not_there():
    for wrong, why in (
        (row(GoldAnswer("훈민정음", None)), "^the context has no '훈민정음'$"),
        (
            row(GoldAnswer("한글", 11), GoldAnswer("1443년", 5)),
            "^the context has '443년에' at 5, the answer is '1443년'$",
        ),
        (row(GoldAnswer("한글", 999)), "^the context has '' at 999, the answer is '한글'$"),
        (row(impossible=False), "the question has no answer, but is not marked as impossible"),
    ):
        with pytest.raises(ValueError, match=why):
            right_answers(wrong)
