"""Why answers are wrong."""

import json

import pytest

from korbert.tasks.files import GoldAnswer
from korbert.tasks.metrics.misses import explain_misses, miss_cause, snippets
from tests.korbert.tasks.answering import passage

CONTEXT = "세종은 1443년에 한글을 만들었다.\r\n🙂 그것은 훈민정음이다."
LETTERS = passage(CONTEXT, [(i, i + 1) for i in range(len(CONTEXT))])
YEAR = ("1443년", 4)


def rows(*answers):
    """Questions on the context with these answers, (text, start) or None for none."""
    return [
        {"id": f"q{i}", "question": "한글은 언제 만들어졌나?", "context": CONTEXT, "answers": answer and [answer]}
        for i, answer in enumerate(answers)
    ]


@pytest.mark.parametrize(
    ("predicted", "reachable", "cause"),
    [
        ((4, 10), True, "boundary"),  # 1443년에
        ((4, 8), True, "boundary"),  # 1443
        ((3, 11), True, "boundary"),
        ((2, 11), True, "overlap"),
        ((0, 14), True, "overlap"),
        ((9, 12), True, "elsewhere"),  # begins where the answer ends
        ((0, 3), True, "elsewhere"),
        (None, True, "elsewhere"),
        ((4, 10), False, "unreachable"),
        ((20, 22), True, "boundary"),  # of the other answer
    ],
)
def test_miss_cause(predicted, reachable, cause):
    assert miss_cause(predicted, [GoldAnswer("한글을", 20), GoldAnswer("1443년", 4)], reachable=reachable) == cause


def prediction(start=0, end=0):
    return {"answer": CONTEXT[start:end], "start": start, "end": end, "score": 0.5}


def test_misses_are_counted_and_explained():
    given = [prediction(4, 9), prediction(4, 10), prediction(0, 2), prediction()]
    found = explain_misses(rows(*[YEAR] * 4), [LETTERS] * 4, given)
    assert found["gold_unreachable"] == 0
    assert found["by_cause"] == {"unreachable": 0, "boundary": 1, "overlap": 0, "elsewhere": 2}
    told = ("id", "prediction", "cause", "prediction_span", "answer_span")
    assert [tuple(miss[name] for name in told) for miss in found["misses"]] == [
        ("q1", "1443년에", "boundary", (4, 10), (4, 9)),
        ("q2", "세종", "elsewhere", (0, 2), (4, 9)),
        ("q3", "", "elsewhere", None, (4, 9)),
    ]
    assert found["misses"][1]["snippets"] == [{"start": 0, "text": CONTEXT}]
    assert found["answer_chars"] == [0, 0, 0, 0, 0, 4]
    assert found["prediction_chars"] == [1, 0, 1, 0, 0, 1, 1]
    whole = passage(CONTEXT, [(0, len(CONTEXT))])
    found = explain_misses(rows(YEAR), [whole], [prediction(0, len(CONTEXT))])
    assert (found["gold_unreachable"], found["by_cause"]["unreachable"]) == (1, 1)
    given = [prediction(4, 9), prediction(), prediction(11, 13), prediction(), prediction(11, 13)]
    found = explain_misses(rows(YEAR, YEAR, YEAR, None, None), [LETTERS] * 5, given)
    causes = {"unreachable": 0, "boundary": 0, "overlap": 0, "elsewhere": 1, "invented": 1, "unanswered": 1}
    assert found["by_cause"] == causes
    unanswered, elsewhere, invented = found["misses"]
    assert (unanswered["cause"], elsewhere["cause"], invented["cause"]) == ("unanswered", "elsewhere", "invented")
    assert (invented["answer_span"], invented["answers"], invented["prediction_span"]) == (None, [], (11, 13))
    assert json.dumps(found, allow_nan=False)


def test_snippets_reach_60_characters_to_both_sides():
    for spans, ranges in (
        ([(100, 110)], [(40, 170)]),
        ([(0, 5)], [(0, 65)]),
        ([(295, 300)], [(235, 300)]),
        ([(100, 110), (105, 120)], [(40, 180)]),
        ([(250, 260), (20, 30)], [(0, 90), (190, 300)]),  # in the order of the text
        ([(20, 30), (150, 160)], [(0, 220)]),  # 90 = 90: they touch
    ):
        text = "".join(chr(ord("가") + place) for place in range(300))
        found = snippets(text, spans)
        assert [(one["start"], one["start"] + len(one["text"])) for one in found] == ranges
        assert all(text[one["start"] :].startswith(one["text"]) for one in found)
